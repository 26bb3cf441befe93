"""Tests for L{kubetwist.registry.core.persistentvolume}."""
