"""Tests for L{kubetwist.registry.resource}."""
