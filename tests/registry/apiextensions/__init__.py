"""Tests for L{kubetwist.registry.apiextensions}."""
