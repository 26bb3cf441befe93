"""Tests for L{kubetwist.registry.networking}."""
