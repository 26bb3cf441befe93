"""Tests for L{kubetwist.admission_plugins.policies}."""
