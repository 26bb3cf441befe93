"""Tests for L{kubetwist.controllers.serviceaccounts}."""
