"""Tests for L{kubetwist.server.diagnosis}."""
