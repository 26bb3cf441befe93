"""A controller that greets."""
