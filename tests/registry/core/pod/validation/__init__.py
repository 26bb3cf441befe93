"""Tests for L{kubetwist.registry.core.pod.validation}."""
