"""Tests for L{kubetwist.registry.core.endpoints}."""
