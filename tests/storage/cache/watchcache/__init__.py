"""Tests for L{kubetwist.storage.cache.watchcache}."""
