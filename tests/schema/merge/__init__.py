"""Tests for L{kubetwist.schema.merge}."""
