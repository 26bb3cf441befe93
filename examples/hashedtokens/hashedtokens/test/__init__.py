"""Run them with trial: C{trial hashedtokens}."""
