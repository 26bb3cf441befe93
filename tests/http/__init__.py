"""Tests of L{kubetwist.http}."""
