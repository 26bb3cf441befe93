"""Tests for L{kubetwist.controllers.autoscaling}."""
