"""Tests for L{kubetwist.audit}."""
