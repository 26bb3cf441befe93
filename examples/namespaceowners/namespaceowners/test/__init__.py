"""Run them with trial: C{trial namespaceowners}."""
