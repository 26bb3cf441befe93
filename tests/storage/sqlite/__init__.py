"""Tests for L{kubetwist.storage.sqlite}."""
