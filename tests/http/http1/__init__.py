"""Tests of L{kubetwist.http.http1}."""
