"""Tests for L{kubetwist.controllers.endpointreconcilers}."""
