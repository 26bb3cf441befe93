"""Validation of webhook configurations and admission policies."""
