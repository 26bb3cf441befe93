"""Tests for L{kubetwist.http.http1}."""
