"""Tests of L{kubetwist.registry.core.persistentvolumeclaim}."""
