"""Tests for L{kubetwist.registry.batch.validation}."""
