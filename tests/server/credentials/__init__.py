"""Tests of L{kubetwist.server.credentials}."""
