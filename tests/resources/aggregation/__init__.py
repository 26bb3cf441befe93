"""Tests for L{kubetwist.resources.aggregation}."""
