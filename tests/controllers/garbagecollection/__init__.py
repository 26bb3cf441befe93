"""Tests for L{kubetwist.controllers.garbagecollection}."""
