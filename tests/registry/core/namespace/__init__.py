"""Tests of L{kubetwist.registry.core.namespace}."""
