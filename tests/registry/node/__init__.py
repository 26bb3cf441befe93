"""Tests for L{kubetwist.registry.node}."""
