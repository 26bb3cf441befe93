"""Scheduled backups of a data directory, and the changes between them: an archive to restore any revision from."""
