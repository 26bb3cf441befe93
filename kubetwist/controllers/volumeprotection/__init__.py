"""Controllers of volumes and claims that are in use: pvcprotection and pvprotection."""
