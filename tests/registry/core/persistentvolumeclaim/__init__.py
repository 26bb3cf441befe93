"""Tests for L{kubetwist.registry.core.persistentvolumeclaim}."""
