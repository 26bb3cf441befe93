"""Tests of L{kubetwist.registry.core.configmap}."""
