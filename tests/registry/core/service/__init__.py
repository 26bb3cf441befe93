"""Tests for L{kubetwist.registry.core.service}."""
