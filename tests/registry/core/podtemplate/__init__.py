"""Tests for L{kubetwist.registry.core.podtemplate}."""
