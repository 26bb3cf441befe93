"""Tests for L{kubetwist.controllers.endpoints}."""
