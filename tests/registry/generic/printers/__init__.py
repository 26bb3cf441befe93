"""Tests for L{kubetwist.registry.generic.printers}."""
