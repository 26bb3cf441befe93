"""Structural schemas."""

from __future__ import annotations

TEXT = {"type": "string"}
