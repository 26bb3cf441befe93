"""Values shared by tests of Deployments and rollouts."""

from __future__ import annotations

LABELS = {"app": "web"}
