"""Validation of custom resources by their structural schema and its CEL rules."""
