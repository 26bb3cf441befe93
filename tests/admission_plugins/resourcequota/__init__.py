"""Tests for L{kubetwist.admission_plugins.resourcequota}."""
