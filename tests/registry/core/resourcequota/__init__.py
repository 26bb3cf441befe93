"""Tests for L{kubetwist.registry.core.resourcequota}."""
