"""Tests for L{kubetwist.client}."""
