"""Tests of L{kubetwist.http.http2}."""
