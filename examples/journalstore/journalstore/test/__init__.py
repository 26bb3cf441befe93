"""Run them with trial: C{trial journalstore}."""
