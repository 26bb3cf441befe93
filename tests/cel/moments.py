"""Durations in nanoseconds."""

from __future__ import annotations

SECOND = 1_000_000_000
