"""Tests for L{kubetwist.registry.policy}."""
