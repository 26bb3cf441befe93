"""What tests of Deployments and of their roll-outs share."""

from __future__ import annotations

LABELS = {"app": "web"}
