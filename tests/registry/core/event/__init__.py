"""Tests for L{kubetwist.registry.core.event}."""
