"""Tests for L{kubetwist.registry.core.secret}."""
