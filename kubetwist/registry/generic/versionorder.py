"""The order of versions of a group."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final


@lru_cache(maxsize=256)
def version_preference(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version: v2, v1, v1beta2, v1beta1, v1alpha1, and then other names."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return 3, 0, 0, version
    major, stability, minor = match.groups()
    return ["", "beta", "alpha"].index(stability or ""), -int(major), -int(minor or 0), ""


_KUBE_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
