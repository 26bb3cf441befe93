"""Warnings about jobs."""

from __future__ import annotations

from typing import Final

from ...api.featuregates import FeatureGates
from ...api.resource import JSONObject
from ..core.pod.warnings import template_warnings

#: Jobs with more completions and more parallelism than this get a warning.
_MANY_COMPLETIONS: Final = 100_000
_MUCH_PARALLELISM: Final = 10_000
_MANY_INDEXES: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, a Kubernetes "
    "control plane might not be able to track completedIndexes when a big number of indexes fail"
)


def job_warnings(spec: JSONObject, path: str, features: FeatureGates) -> list[str]:
    """Return warnings for the spec of a job."""
    texts = []
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec.get("completionMode") == "Indexed" and completions > _MANY_COMPLETIONS and parallelism > _MUCH_PARALLELISM:
        texts.append(f"{path}: {_MANY_INDEXES}")
    return texts + template_warnings(spec.get("template"), f"{path}.template", features)
