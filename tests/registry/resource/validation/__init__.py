"""Tests for L{kubetwist.registry.resource.validation}."""
