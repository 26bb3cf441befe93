"""Tests for L{kubetwist.resources.proxy}."""
