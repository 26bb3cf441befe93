"""Run them with trial: C{trial houserules}."""
