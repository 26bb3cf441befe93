"""Tests for L{kubetwist.controllers.aggregation}."""
