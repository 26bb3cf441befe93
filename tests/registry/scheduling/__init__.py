"""Tests for L{kubetwist.registry.scheduling}."""
