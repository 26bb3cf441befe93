"""Tests for L{kubetwist.registry.core.node}."""
