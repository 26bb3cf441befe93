"""Tests for L{kubetwist.controllers.csr}."""
