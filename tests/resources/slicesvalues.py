"""Values for tests of slices."""

from __future__ import annotations

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
