"""Tests of L{kubetwist.server.archive}."""
