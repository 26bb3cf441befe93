"""Tests of L{kubetwist.http.connection}."""
