"""Base of tests of the types of a release."""

from __future__ import annotations

from typing import Any

from tests.schema.release import type_of


def decoded(obj: Any, kind: str = "Pod", api_version: str = "v1") -> Any:
    """Return a decoded object, and assert that it has no unknown fields."""
    problems: list[str] = []
    result = type_of(kind, api_version).decode(obj, problems)
    assert not problems, problems
    return result


def container(**fields: Any) -> Any:
    """Return the only container of a pod, decoded."""
    return decoded({"spec": {"containers": [fields]}})["spec"]["containers"][0]
