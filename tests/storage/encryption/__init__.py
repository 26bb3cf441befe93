"""Tests for L{kubetwist.storage.encryption}."""
