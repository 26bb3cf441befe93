"""Tests for L{kubetwist.server.workers}."""
