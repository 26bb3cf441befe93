"""Tests for L{kubetwist.outgoing}."""
