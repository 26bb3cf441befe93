"""Tests for L{kubetwist.storage.etcd}."""
