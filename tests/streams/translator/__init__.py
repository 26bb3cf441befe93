"""Tests for L{kubetwist.streams.translator}."""
