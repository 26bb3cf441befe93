"""Tests for L{kubetwist.registry.storagemigration}."""
