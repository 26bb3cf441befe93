"""
The conversion between v1beta1 and v1 of C{backups.example.org}.

What is a text and a number in v1beta1 is an object in v1::

    schedule: "0 2 * * *"    schedule: {cron: "0 2 * * *", timeZone: Europe/Berlin}
    keep: 7                  retention: {daily: 7, weekly: 4, monthly: 12}

A client of v1beta1 that reads and writes an object must not lose the fields that v1beta1 lacks. An annotation of the
object in v1beta1 contains them.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kubetwist.api.jsontypes import JSONObject

V1BETA1: Final = "example.org/v1beta1"
V1: Final = "example.org/v1"
#: The fields of v1 that v1beta1 lacks, as JSON.
ANNOTATION: Final = "backups.example.org/v1"


def convert(objects: list[JSONObject], api_version: str) -> list[JSONObject]:
    """
    Convert objects.

    @see: L{kubetwist.interfaces.IConversionPlugin.convert}
    """
    for obj in objects:
        change = obj["apiVersion"], api_version
        if change == (V1BETA1, V1):
            _to_v1(obj)
        elif change == (V1, V1BETA1):
            _to_v1beta1(obj)
        elif obj["apiVersion"] != api_version:
            raise ValueError(f"there is no conversion from {obj['apiVersion']} to {api_version}")
        obj["apiVersion"] = api_version
    return objects


def _to_v1beta1(obj: JSONObject) -> None:
    spec = obj["spec"]
    lacking: JSONObject = {}
    schedule = spec["schedule"]
    spec["schedule"] = schedule.pop("cron")
    if schedule:
        lacking["schedule"] = schedule
    retention = spec.pop("retention", None)
    if retention is not None:
        daily = retention.pop("daily", None)
        if daily is not None:
            spec["keep"] = daily
        if retention or daily is None:
            lacking["retention"] = retention
    if lacking:
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION] = json.dumps(lacking, sort_keys=True, separators=(",", ":"))


def _to_v1(obj: JSONObject) -> None:
    spec = obj["spec"]
    lacking = _take_annotation(obj["metadata"])
    spec["schedule"] = {"cron": spec["schedule"], **lacking.get("schedule", {})}
    retention = lacking.get("retention")
    keep = spec.pop("keep", None)
    if keep is not None:
        retention = {"daily": keep, **(retention or {})}
    if retention is not None:
        spec["retention"] = retention


def _take_annotation(metadata: JSONObject) -> JSONObject:
    """
    Remove the annotation and return its content.

    Clients can write annotations. Invalid content is dropped, since an error would make the object unreadable.
    """
    annotations = metadata.get("annotations") or {}
    text = annotations.pop(ANNOTATION, None)
    if text is None:
        return {}
    if not annotations:
        del metadata["annotations"]
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if _is_valid(content) else {}


def _is_valid(content: Any) -> bool:
    """Return whether the content of an annotation has only fields of v1 that v1beta1 lacks."""
    if not isinstance(content, dict) or not content.keys() <= {"schedule", "retention"}:
        return False
    schedule, retention = content.get("schedule", {}), content.get("retention", {})
    if not isinstance(schedule, dict) or not isinstance(retention, dict):
        return False
    if not schedule.keys() <= {"timeZone"} or not all(isinstance(zone, str) for zone in schedule.values()):
        return False
    return retention.keys() <= {"weekly", "monthly"} and all(
        type(count) is int and count >= 0 for count in retention.values()
    )
