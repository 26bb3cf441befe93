"""Tests for L{kubetwist.registry.discovery}."""
