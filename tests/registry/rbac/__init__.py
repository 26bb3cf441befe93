"""Tests of L{kubetwist.registry.rbac}."""
