"""Tests for L{kubetwist.registry.authentication}."""
