"""Tests for L{kubetwist.api.go}."""
