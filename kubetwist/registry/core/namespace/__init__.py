"""Namespaces."""
