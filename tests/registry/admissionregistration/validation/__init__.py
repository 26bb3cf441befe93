"""Tests for L{kubetwist.registry.admissionregistration.validation}."""
