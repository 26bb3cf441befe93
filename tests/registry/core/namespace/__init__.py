"""Tests for L{kubetwist.registry.core.namespace}."""
