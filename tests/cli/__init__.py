"""Tests for L{kubetwist.cli}."""
