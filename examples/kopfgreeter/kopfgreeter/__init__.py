"""An operator that greets."""
