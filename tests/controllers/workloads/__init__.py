"""Tests for L{kubetwist.controllers.workloads}."""
