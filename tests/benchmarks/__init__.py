"""Tests for F{benchmarks/}."""
