"""Tests for L{kubetwist.server.endpoints}."""
