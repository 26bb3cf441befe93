"""Tests of L{kubetwist.server.endpoints}."""
