"""Tables of pods."""

from __future__ import annotations

MAPS = "/api/v1/namespaces/default/configmaps"
