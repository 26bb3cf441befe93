"""Tests for L{kubetwist.registry.core.replicationcontroller}."""
