"""Tests for L{kubetwist.registry.core.limitrange}."""
