"""Tests of L{kubetwist.registry.core.serviceaccount}."""
