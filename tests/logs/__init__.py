"""Tests for L{kubetwist.logs}."""
