"""Tests for L{kubetwist.http}."""
