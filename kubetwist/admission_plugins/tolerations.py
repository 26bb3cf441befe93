"""Merging of pod tolerations."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.resource import JSONObject


def merge_tolerations(first: Sequence[JSONObject], second: Sequence[JSONObject]) -> list[JSONObject]:
    """Return the tolerations of both lists, without tolerations that another one implies (C{MergeTolerations})."""
    combined = [*first, *second]
    merged: list[JSONObject] = []
    for index, one in enumerate(combined):
        if any(implies(other, one) for other in merged):
            continue
        if any(other != one and implies(other, one) for other in combined[index + 1 :]):
            continue
        merged.append(one)
    return merged


def implies(wide: JSONObject, narrow: JSONObject) -> bool:
    """Return whether C{wide} tolerates everything that C{narrow} tolerates."""
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if (wide.get("key") or "") != (narrow.get("key") or "") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and wide["effect"] != narrow.get("effect"):
        return False
    seconds = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None:
        narrow_seconds = narrow.get("tolerationSeconds")
        if narrow_seconds is None or narrow_seconds > seconds:
            return False
    if exists:
        return True
    if (wide.get("operator") or "Equal") != "Equal":
        return False
    return narrow.get("operator") == "Equal" and (narrow.get("value") or "") == (wide.get("value") or "")
