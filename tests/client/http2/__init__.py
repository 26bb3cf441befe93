"""Tests of L{kubetwist.client.http2}."""
