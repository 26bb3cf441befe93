"""Tests for L{kubetwist.storage.remote}."""
