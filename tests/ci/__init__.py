"""Tests for F{.ci/}."""
