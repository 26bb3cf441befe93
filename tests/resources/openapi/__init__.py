"""Tests for L{kubetwist.resources.openapi}."""
