"""Tests for L{kubetwist.server.credentials}."""
