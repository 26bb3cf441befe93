"""Tests of L{kubetwist.registry.core.componentstatus}."""
