"""Tests for L{kubetwist.controllers.fakekubelet}."""
