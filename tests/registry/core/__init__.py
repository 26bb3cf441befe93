"""Tests of L{kubetwist.registry.core}."""
