"""Tests for L{kubetwist.schema.protobuf}."""
