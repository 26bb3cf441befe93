"""Tests for L{kubetwist.registry.customresources.conversion}."""
