"""Run them with trial: C{trial backupversions}."""
