"""Tests for L{kubetwist.registry.generic.validation}."""
