"""Tests for L{kubetwist.cli.flags}."""
