"""Tables of pods, for tests."""

from __future__ import annotations

MAPS = "/api/v1/namespaces/default/configmaps"
