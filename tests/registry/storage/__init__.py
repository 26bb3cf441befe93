"""Tests for L{kubetwist.registry.storage}."""
