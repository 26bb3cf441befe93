"""Tests for L{kubetwist.resources.handlers.watch}."""
