"""Run them with trial: C{trial objectexpiry}."""
