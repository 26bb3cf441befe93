"""Tests for L{kubetwist.registry.authorization}."""
