"""Tests for L{kubetwist.schema.validation}."""
