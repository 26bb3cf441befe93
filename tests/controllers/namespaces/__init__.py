"""Tests for L{kubetwist.controllers.namespaces}."""
