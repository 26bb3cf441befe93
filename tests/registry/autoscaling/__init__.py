"""Tests for L{kubetwist.registry.autoscaling}."""
