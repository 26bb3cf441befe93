"""Tests for L{kubetwist.http.connection}."""
