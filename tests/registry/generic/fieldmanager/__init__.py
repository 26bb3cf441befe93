"""Tests of L{kubetwist.registry.generic.fieldmanager}."""
