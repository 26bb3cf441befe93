"""Logging: verbosity, formats, rate limits, redaction, and the access log."""
