"""Tests for L{kubetwist.registry.coordination}."""
