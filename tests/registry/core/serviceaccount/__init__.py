"""Tests for L{kubetwist.registry.core.serviceaccount}."""
