"""Tests for L{kubetwist.registry.core.componentstatus}."""
