"""Tests for L{kubetwist.authorization}."""
