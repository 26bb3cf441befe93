"""Tests for L{kubetwist.resources.discovery}."""
