"""Command lines: C{twist kubeapi} and its flags, and the backup, restore and migration commands."""
