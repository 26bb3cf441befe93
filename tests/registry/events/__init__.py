"""Tests for L{kubetwist.registry.events}."""
