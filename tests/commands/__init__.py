"""Tests for L{kubetwist.commands}."""
