"""Paths of the server itself: health, metrics, version, diagnostics."""
