"""Tests for L{kubetwist.registry.rbac.bootstrap}."""
