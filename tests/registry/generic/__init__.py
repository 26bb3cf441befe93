"""Tests of L{kubetwist.registry.generic}."""
