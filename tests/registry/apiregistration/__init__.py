"""Tests for L{kubetwist.registry.apiregistration}."""
