"""Tests for L{kubetwist.controllers.volumeprotection}."""
