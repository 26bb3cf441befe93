"""Controllers that protect volumes and claims in use: pvcprotection and pvprotection."""
