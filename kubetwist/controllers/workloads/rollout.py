"""
How a Deployment moves from one ReplicaSet to the next: the arithmetic of it, without doing anything.

@see: kubernetes, C{pkg/controller/deployment/util/deployment_util.go}, C{rolling.go}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor
from typing import Final

import orjson

from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...api.times import seconds_since_epoch

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
#: Annotations that a Deployment does not hand on to its ReplicaSets.
OWN_ANNOTATIONS: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    )
)
#: How long the list of earlier revisions may get, in characters.
_HISTORY_LENGTH: Final = 2000
#: No vowels and nothing that looks like one, so that no words come out.
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
_NO_DEADLINE: Final = 2**31 - 1
#: Reasons of the condition Progressing: all is done, and nothing has moved for too long.
NEW_RS_AVAILABLE_REASON: Final = "NewReplicaSetAvailable"
TIMED_OUT_REASON: Final = "ProgressDeadlineExceeded"


def annotations_of(obj: JSONObject) -> Mapping[str, str]:
    """Return the annotations; none is empty."""
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def wanted(obj: JSONObject) -> int:
    """Return how many pods are asked for."""
    found = obj["spec"].get("replicas")
    return 1 if found is None else int(found)


def status_count(obj: JSONObject, field: str) -> int:
    """Return a count of the status."""
    return int((obj.get("status") or {}).get(field) or 0)


def total(sets: Iterable[JSONObject]) -> int:
    """Return how many pods ReplicaSets ask for together."""
    return sum(map(wanted, sets))


def age_order(obj: JSONObject) -> tuple[str, str]:
    """Return what to sort by so that the oldest come first."""
    return (obj["metadata"].get("creationTimestamp") or "", obj["metadata"]["name"])


def template_hash(template: JSONObject, collisions: int) -> str:
    """
    Return a short name for a template.

    @param collisions: How often the name was another's already.
    """
    value = 2166136261
    for byte in orjson.dumps([template, collisions], option=orjson.OPT_SORT_KEYS):
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(_SAFE[ord(letter) % len(_SAFE)] for letter in str(value))


def bare_template(template: JSONObject) -> JSONObject:
    """Return a template without the label that a Deployment gives it; not to be changed."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    if HASH_LABEL not in labels:
        return template
    left = {name: value for name, value in labels.items() if name != HASH_LABEL}
    return {**template, "metadata": {**template["metadata"], "labels": left}}


def same_template(one: JSONObject, other: JSONObject) -> bool:
    """Return whether two templates make the same pods."""
    return bool(bare_template(one) == bare_template(other))


def find_new_replica_set(deployment: JSONObject, sets: Iterable[JSONObject]) -> JSONObject | None:
    """Return the ReplicaSet of the template of now: the oldest, should there be several."""
    template = deployment["spec"]["template"]
    return next((one for one in sorted(sets, key=age_order) if same_template(one["spec"]["template"], template)), None)


def is_rolling(deployment: JSONObject) -> bool:
    """Return whether it is updated bit by bit."""
    strategy: JSONObject = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def scaled_value(value: JSONValue, whole: int, up: bool) -> int:
    """
    Return a number, or a percentage of one.

    @param up: Whether to round up.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * whole / 100
    return ceil(exact) if up else floor(exact)


def max_surge_and_unavailable(deployment: JSONObject) -> tuple[int, int]:
    """Return how many pods there may be too many, and too few, while it is updated."""
    replicas = wanted(deployment)
    if not is_rolling(deployment):
        return 0, 0
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge"), replicas, True)
    unavailable = scaled_value(rolling.get("maxUnavailable"), replicas, False)
    if not surge and not unavailable:
        # With neither it could never move.
        unavailable = 1
    return surge, min(unavailable, replicas)


def new_replica_set_replicas(deployment: JSONObject, sets: Iterable[JSONObject], new: int) -> int:
    """
    Return how many pods the new ReplicaSet may have by now.

    @param sets: All of them.
    @param new: How many it asks for.
    """
    if not is_rolling(deployment):
        return wanted(deployment)
    room = wanted(deployment) + max_surge_and_unavailable(deployment)[0] - total(sets)
    if room <= 0:
        return new
    return new + min(room, wanted(deployment) - new)


def revision_of(obj: JSONObject) -> int:
    """Return the revision of a ReplicaSet; 0 if its annotation is missing."""
    try:
        return int(annotations_of(obj).get(REVISION, "0"))
    except ValueError:
        return 0


def size_annotations(deployment: JSONObject) -> dict[str, str]:
    """Return the annotations of a ReplicaSet about the size of its Deployment."""
    return {
        DESIRED: str(wanted(deployment)),
        MAXIMUM: str(wanted(deployment) + max_surge_and_unavailable(deployment)[0]),
    }


def set_annotations(deployment: JSONObject, found: Mapping[str, str], revision: int, exists: bool) -> dict[str, str]:
    """
    Return the annotations of the new ReplicaSet.

    @param found: Those that it has.
    @param exists: Whether it is there already.
    """
    made = dict(found)
    made.update((name, text) for name, text in annotations_of(deployment).items() if name not in OWN_ANNOTATIONS)
    old = found.get(REVISION, "")
    try:
        number = int(old) if old else 0
    except ValueError:
        return made
    if number < revision:
        made[REVISION] = str(revision)
        if old:
            history = [one for one in found.get(HISTORY, "").split(",") if one]
            history.append(old)
            while len(",".join(history)) > _HISTORY_LENGTH and len(history) > 1:
                history.pop(0)
            made[HISTORY] = ",".join(history)
    if not exists:
        made.update(size_annotations(deployment))
    return made


def proportions(deployment: JSONObject, sets: Sequence[JSONObject]) -> dict[str, int]:
    """
    How to spread a change of the size over ReplicaSets that are in the midst of an update.

    @param sets: Those that have pods.
    @return: The new size of each by name.
    """
    surge = max_surge_and_unavailable(deployment)[0]
    allowed = wanted(deployment) + surge if wanted(deployment) else 0
    change = allowed - total(sets)
    if change > 0:
        ordered = sorted(sets, key=age_order, reverse=True)
        ordered.sort(key=wanted, reverse=True)
    else:
        ordered = sorted(sets, key=age_order)
        ordered.sort(key=wanted, reverse=True)
    sizes: dict[str, int] = {}
    done = 0
    for one in ordered:
        size = wanted(one)
        if change and size and change != done:
            part = _fraction(deployment, one, surge)
            part = min(part, change - done) if change > 0 else max(part, change - done)
            done += part
            size += part
        sizes[one["metadata"]["name"]] = size
    if ordered:
        first = ordered[0]["metadata"]["name"]
        sizes[first] = max(0, sizes[first] + change - done)
    return sizes


def _fraction(deployment: JSONObject, one: JSONObject, surge: int) -> int:
    """By how much a ReplicaSet grows or shrinks with the whole."""
    size = wanted(one)
    if not wanted(deployment):
        return -size
    try:
        before = int(annotations_of(one).get(MAXIMUM, "0"))
    except ValueError:
        before = 0
    before = before or status_count(deployment, "replicas")
    if not before:
        return 0
    exact = size * (wanted(deployment) + surge) / before
    return floor(exact + 0.5) - size


def deadline_of(deployment: JSONObject) -> int | None:
    """In how many seconds something must have moved; L{None} without limit."""
    found = deployment["spec"].get("progressDeadlineSeconds")
    return None if found is None or found == _NO_DEADLINE else int(found)


def is_complete(deployment: JSONObject, status: JSONObject) -> bool:
    """Return whether all pods are of the new template and available, and no others are left."""
    size = wanted(deployment)
    return (
        (status.get("updatedReplicas") or 0) == size
        and (status.get("replicas") or 0) == size
        and (status.get("availableReplicas") or 0) == size
        and (status.get("observedGeneration") or 0) >= deployment["metadata"].get("generation", 0)
    )


def is_progressing(old: JSONObject, new: JSONObject) -> bool:
    """Return whether one status is closer to the end of an update than another."""

    def count(status: JSONObject, name: str) -> int:
        return status.get(name) or 0

    def left(status: JSONObject) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    return left(new) < left(old) or any(
        count(new, name) > count(old, name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def find_condition(status: JSONObject, kind: str) -> JSONObject | None:
    """Return a condition of a status."""
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), None)


def set_condition(status: JSONObject, kind: str, holds: str, reason: str, message: str, now: str) -> None:
    """Set a condition of a status, unless it is so for the same reason already."""
    known = find_condition(status, kind)
    if known is not None and known["status"] == holds and known.get("reason") == reason:
        return
    since = known["lastTransitionTime"] if known is not None and known["status"] == holds else now
    made = {
        "type": kind,
        "status": holds,
        "lastUpdateTime": now,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    drop_condition(status, kind)
    status.setdefault("conditions", []).append(made)


def drop_condition(status: JSONObject, kind: str) -> None:
    """Remove a condition of a status."""
    left = [one for one in status.get("conditions") or () if one.get("type") != kind]
    if left:
        status["conditions"] = left
    else:
        status.pop("conditions", None)


def seconds_to_deadline(deployment: JSONObject, status: JSONObject, now: float) -> float | None:
    """In how many seconds an update counts as stuck; below 0 if it does, L{None} if it is not under way."""
    deadline, progress = deadline_of(deployment), find_condition(status, "Progressing")
    if deadline is None or progress is None or progress.get("reason") in (NEW_RS_AVAILABLE_REASON, TIMED_OUT_REASON):
        return None
    return seconds_since_epoch(progress["lastUpdateTime"]) + deadline - now
