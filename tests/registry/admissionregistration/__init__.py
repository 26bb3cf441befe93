"""Tests for L{kubetwist.registry.admissionregistration}."""
