"""The allowed values of audit flags."""

from __future__ import annotations

from typing import Final

BATCH: Final = "batch"
BLOCKING: Final = "blocking"
BLOCKING_STRICT: Final = "blocking-strict"
MODES: Final = (BATCH, BLOCKING, BLOCKING_STRICT)
FORMATS: Final = ("legacy", "json")
VERSION: Final = "audit.k8s.io/v1"
