"""Tests for L{kubetwist.registry.apps}."""
