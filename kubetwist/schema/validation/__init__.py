"""Validation of custom objects by their OpenAPI schema and its CEL rules."""
