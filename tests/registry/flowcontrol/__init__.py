"""Tests for L{kubetwist.registry.flowcontrol}."""
