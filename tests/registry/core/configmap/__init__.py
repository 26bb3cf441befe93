"""Tests for L{kubetwist.registry.core.configmap}."""
