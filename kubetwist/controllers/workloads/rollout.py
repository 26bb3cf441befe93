"""
Computations for rollouts of Deployments. No I/O.

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
#: Annotations that a Deployment does not pass on to its ReplicaSets.
EXCLUDED_ANNOTATIONS: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    )
)
#: Maximum length of the revision history annotation, in characters.
_HISTORY_LENGTH: Final = 2000
#: The alphabet of hashes. It has no vowels, so that hashes contain no words (Go: util/rand.SafeEncodeString).
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
_NO_DEADLINE: Final = 2**31 - 1
#: Reasons of the condition Progressing.
NEW_RS_AVAILABLE_REASON: Final = "NewReplicaSetAvailable"
TIMED_OUT_REASON: Final = "ProgressDeadlineExceeded"


def annotations_of(obj: JSONObject) -> Mapping[str, str]:
    """Return the annotations of an object, which may be empty."""
    annotations: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return annotations


def desired_replicas(obj: JSONObject) -> int:
    """Return the number of replicas in the spec; 1 by default."""
    replicas = obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def status_count(obj: JSONObject, field: str) -> int:
    """Return a counter in the status; 0 by default."""
    return int((obj.get("status") or {}).get(field) or 0)


def sum_desired_replicas(sets: Iterable[JSONObject]) -> int:
    """Return the sum of the replicas in the specs."""
    return sum(map(desired_replicas, sets))


def age_order(obj: JSONObject) -> tuple[str, str]:
    """Return the sort key that puts the oldest objects first."""
    return (obj["metadata"].get("creationTimestamp") or "", obj["metadata"]["name"])


def template_hash(template: JSONObject, collisions: int) -> str:
    """
    Return the hash of a template for names and labels.

    @param collisions: The number of hash collisions so far (C{collisionCount}).
    """
    value = 2166136261
    for byte in orjson.dumps([template, collisions], option=orjson.OPT_SORT_KEYS):
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(_SAFE[ord(letter) % len(_SAFE)] for letter in str(value))


def bare_template(template: JSONObject) -> JSONObject:
    """Return a template without the pod-template-hash label. It must not be changed."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    if HASH_LABEL not in labels:
        return template
    remaining = {name: value for name, value in labels.items() if name != HASH_LABEL}
    return {**template, "metadata": {**template["metadata"], "labels": remaining}}


def same_template(one: JSONObject, other: JSONObject) -> bool:
    """Return whether two templates are equal, apart from the pod-template-hash label."""
    return bool(bare_template(one) == bare_template(other))


def find_new_replica_set(deployment: JSONObject, sets: Iterable[JSONObject]) -> JSONObject | None:
    """Return the oldest ReplicaSet with the template of the Deployment."""
    template = deployment["spec"]["template"]
    return next((one for one in sorted(sets, key=age_order) if same_template(one["spec"]["template"], template)), None)


def is_rolling(deployment: JSONObject) -> bool:
    """Return whether the strategy of a Deployment is RollingUpdate."""
    strategy: JSONObject = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def scaled_value(value: JSONValue, whole: int, up: bool) -> int:
    """
    Return an integer, or the value of a percentage (Go: intstr.GetScaledValueFromIntOrPercent).

    @param value: An integer, or a percentage as text.
    @param whole: The value of 100 %.
    @param up: Whether to round up.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * whole / 100
    return ceil(exact) if up else floor(exact)


def max_surge_and_unavailable(deployment: JSONObject) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable of a Deployment as numbers of pods (Go: ResolveFenceposts)."""
    replicas = desired_replicas(deployment)
    if not is_rolling(deployment):
        return 0, 0
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge"), replicas, True)
    unavailable = scaled_value(rolling.get("maxUnavailable"), replicas, False)
    if not surge and not unavailable:
        # With both 0 a rollout could not progress.
        unavailable = 1
    return surge, min(unavailable, replicas)


def new_replica_set_replicas(deployment: JSONObject, sets: Iterable[JSONObject], new: int) -> int:
    """
    Return the replicas of the new ReplicaSet for the next step (Go: NewRSNewReplicas).

    @param sets: All ReplicaSets of the Deployment.
    @param new: The current replicas of the new ReplicaSet.
    """
    if not is_rolling(deployment):
        return desired_replicas(deployment)
    room = desired_replicas(deployment) + max_surge_and_unavailable(deployment)[0] - sum_desired_replicas(sets)
    if room <= 0:
        return new
    return new + min(room, desired_replicas(deployment) - new)


def revision_of(obj: JSONObject) -> int:
    """Return the revision of a ReplicaSet; 0 if its annotation is missing."""
    try:
        return int(annotations_of(obj).get(REVISION, "0"))
    except ValueError:
        return 0


def size_annotations(deployment: JSONObject) -> dict[str, str]:
    """Return the annotations of a ReplicaSet with the replicas of its Deployment."""
    return {
        DESIRED: str(desired_replicas(deployment)),
        MAXIMUM: str(desired_replicas(deployment) + max_surge_and_unavailable(deployment)[0]),
    }


def set_annotations(deployment: JSONObject, current: Mapping[str, str], revision: int, exists: bool) -> dict[str, str]:
    """
    Return the annotations of the new ReplicaSet (Go: SetNewReplicaSetAnnotations).

    @param deployment: The Deployment.
    @param current: Its current annotations.
    @param revision: The revision of the Deployment.
    @param exists: Whether the ReplicaSet exists.
    """
    annotations = dict(current)
    annotations.update(
        (name, value) for name, value in annotations_of(deployment).items() if name not in EXCLUDED_ANNOTATIONS
    )
    old = current.get(REVISION, "")
    try:
        number = int(old) if old else 0
    except ValueError:
        return annotations
    if number < revision:
        annotations[REVISION] = str(revision)
        if old:
            history = [one for one in current.get(HISTORY, "").split(",") if one]
            history.append(old)
            while len(",".join(history)) > _HISTORY_LENGTH and len(history) > 1:
                history.pop(0)
            annotations[HISTORY] = ",".join(history)
    if not exists:
        annotations.update(size_annotations(deployment))
    return annotations


def proportions(deployment: JSONObject, sets: Sequence[JSONObject]) -> dict[str, int]:
    """
    Distribute a change of the replicas over the active ReplicaSets during a rollout (proportional scaling).

    @param sets: The active ReplicaSets.
    @return: The new replicas of each, by name.
    """
    surge = max_surge_and_unavailable(deployment)[0]
    allowed = desired_replicas(deployment) + surge if desired_replicas(deployment) else 0
    change = allowed - sum_desired_replicas(sets)
    if change > 0:
        ordered = sorted(sets, key=age_order, reverse=True)
        ordered.sort(key=desired_replicas, reverse=True)
    else:
        ordered = sorted(sets, key=age_order)
        ordered.sort(key=desired_replicas, reverse=True)
    sizes: dict[str, int] = {}
    done = 0
    for one in ordered:
        size = desired_replicas(one)
        if change and size and change != done:
            delta = _fraction(deployment, one, surge)
            delta = min(delta, change - done) if change > 0 else max(delta, change - done)
            done += delta
            size += delta
        sizes[one["metadata"]["name"]] = size
    if ordered:
        first = ordered[0]["metadata"]["name"]
        sizes[first] = max(0, sizes[first] + change - done)
    return sizes


def _fraction(deployment: JSONObject, one: JSONObject, surge: int) -> int:
    """Return the change of the replicas of a ReplicaSet in proportion to its Deployment."""
    size = desired_replicas(one)
    if not desired_replicas(deployment):
        return -size
    try:
        old_max = int(annotations_of(one).get(MAXIMUM, "0"))
    except ValueError:
        old_max = 0
    old_max = old_max or status_count(deployment, "replicas")
    if not old_max:
        return 0
    exact = size * (desired_replicas(deployment) + surge) / old_max
    return floor(exact + 0.5) - size


def deadline_of(deployment: JSONObject) -> int | None:
    """Return the progress deadline in seconds, or L{None} if there is none."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _NO_DEADLINE else int(seconds)


def is_complete(deployment: JSONObject, status: JSONObject) -> bool:
    """Return whether all pods are of the new template and available, and there are no old ones."""
    size = desired_replicas(deployment)
    return (
        (status.get("updatedReplicas") or 0) == size
        and (status.get("replicas") or 0) == size
        and (status.get("availableReplicas") or 0) == size
        and (status.get("observedGeneration") or 0) >= deployment["metadata"].get("generation", 0)
    )


def is_progressing(old: JSONObject, new: JSONObject) -> bool:
    """Return whether the new status shows progress compared to the old one (Go: DeploymentProgressing)."""

    def count(status: JSONObject, name: str) -> int:
        return status.get(name) or 0

    def outdated(status: JSONObject) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    return outdated(new) < outdated(old) or any(
        count(new, name) > count(old, name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def find_condition(status: JSONObject, kind: str) -> JSONObject | None:
    """Return the condition of a type, or L{None}."""
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), None)


def set_condition(status: JSONObject, kind: str, holds: str, reason: str, message: str, now: str) -> None:
    """
    Set a condition. Nothing changes if it has the same status and reason already.

    @param status: The status with the conditions.
    @param kind: The type of the condition.
    @param holds: The status of the condition: C{"True"}, C{"False"} or C{"Unknown"}.
    @param reason: The reason.
    @param message: The message.
    @param now: The current time as text.
    """
    existing = find_condition(status, kind)
    if existing is not None and existing["status"] == holds and existing.get("reason") == reason:
        return
    since = existing["lastTransitionTime"] if existing is not None and existing["status"] == holds else now
    condition = {
        "type": kind,
        "status": holds,
        "lastUpdateTime": now,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    drop_condition(status, kind)
    status.setdefault("conditions", []).append(condition)


def drop_condition(status: JSONObject, kind: str) -> None:
    """Remove the condition of a type."""
    remaining = [one for one in status.get("conditions") or () if one.get("type") != kind]
    if remaining:
        status["conditions"] = remaining
    else:
        status.pop("conditions", None)


def seconds_to_deadline(deployment: JSONObject, status: JSONObject, now: float) -> float | None:
    """
    Return the seconds until the progress deadline, negative if it has passed; L{None} if no rollout is in progress.
    """
    deadline, progress = deadline_of(deployment), find_condition(status, "Progressing")
    if deadline is None or progress is None or progress.get("reason") in (NEW_RS_AVAILABLE_REASON, TIMED_OUT_REASON):
        return None
    return seconds_since_epoch(progress["lastUpdateTime"]) + deadline - now
