"""Tests for L{kubetwist.controllers.machinery}."""
