"""Tests for L{kubetwist.registry.apiserverinternal}."""
