"""Tests of L{kubetwist.registry.core.resourcequota}."""
