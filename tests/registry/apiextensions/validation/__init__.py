"""Tests for L{kubetwist.registry.apiextensions.validation}."""
