"""Tests for L{kubetwist.registry.certificates}."""
