"""Rows of nodes, namespaces, configuration, accounts, quotas, events, leases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....api.resource import JSONObject
from ...generic.printers.ages import UNKNOWN, age, since
from ...generic.printers.texts import NONE, condition, name_of, spec_of, status_of
from ..event.conversion import NAMES

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def node(obj: JSONObject) -> Iterator[Any]:
    """Whether it is ready, its roles and versions."""
    status = status_of(obj)
    info = status.get("nodeInfo") or {}
    ready = condition(status, "Ready")
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec_of(obj).get("unschedulable"):
        states.append("SchedulingDisabled")
    yield name_of(obj)
    yield ",".join(states)
    yield ",".join(_roles(obj)) or NONE
    yield age(obj)
    yield info.get("kubeletVersion", "")
    yield _address(status, "InternalIP")
    yield _address(status, "ExternalIP")
    yield info.get("osImage") or UNKNOWN
    kernel = info.get("kernelVersion") or UNKNOWN
    yield f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel
    yield info.get("containerRuntimeVersion") or UNKNOWN


def _roles(obj: JSONObject) -> list[str]:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return sorted(roles - {""})


def _address(status: JSONObject, kind: str) -> str:
    for address in status.get("addresses") or ():
        if address.get("type") == kind:
            found: str = address.get("address", "")
            return found
    return NONE


def namespace(obj: JSONObject) -> Iterator[Any]:
    """Its phase."""
    yield name_of(obj)
    yield status_of(obj).get("phase", "")
    yield age(obj)


def config_map(obj: JSONObject) -> Iterator[Any]:
    """How many keys it has."""
    yield name_of(obj)
    yield len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    yield age(obj)


def secret(obj: JSONObject) -> Iterator[Any]:
    """Its type, and how many keys it has."""
    yield name_of(obj)
    yield obj.get("type", "")
    yield len(obj.get("data") or ())
    yield age(obj)


def name_and_age(obj: JSONObject) -> Iterator[Any]:
    """Nothing else."""
    yield name_of(obj)
    yield age(obj)


def resource_quota(obj: JSONObject) -> Iterator[Any]:
    """Used of allowed, requests and limits apart."""
    status = status_of(obj)
    used = status.get("used") or {}
    texts: tuple[list[str], list[str]] = [], []
    for resource, hard in sorted((status.get("hard") or {}).items()):
        texts[resource.startswith("limits.")].append(f"{resource}: {used.get(resource, '0')}/{hard}")
    yield name_of(obj)
    yield ", ".join(texts[0])
    yield ", ".join(texts[1])
    yield age(obj)


def component_status(obj: JSONObject) -> Iterator[Any]:
    """Whether it is healthy; there is no age."""
    healthy = condition(obj, "Healthy")
    yield name_of(obj)
    if healthy is None:
        yield from ("Unknown", "", "")
    else:
        yield "Healthy" if healthy.get("status") == "True" else "Unhealthy"
        yield healthy.get("message", "")
        yield healthy.get("error", "")


def event(obj: JSONObject) -> Iterator[Any]:
    """What happened to what, when and how often; the name comes last."""
    if obj.get("apiVersion", "v1") != "v1":
        obj = {core: obj[name] for core, name in NAMES.items() if name in obj} | obj
    first_time = obj.get("firstTimestamp") or obj.get("eventTime")
    last_time = obj.get("lastTimestamp") or first_time
    count = obj.get("count") or 1
    series = obj.get("series")
    if series is not None:
        last_time, count = series.get("lastObservedTime"), series.get("count", 0)
    target = obj.get("involvedObject") or {}
    kind = target.get("kind", "").lower()
    yield since(last_time)
    yield obj.get("type", "")
    yield obj.get("reason", "")
    yield f"{kind}/{target['name']}" if target.get("name") else kind
    yield target.get("fieldPath", "")
    yield _source(obj)
    yield obj.get("message", "").strip()
    yield since(first_time)
    yield count
    yield name_of(obj)


def _source(obj: JSONObject) -> str:
    source = obj.get("source") or {}
    component: str = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def lease(obj: JSONObject) -> Iterator[Any]:
    """Who holds it."""
    yield name_of(obj)
    yield spec_of(obj).get("holderIdentity") or ""
    yield age(obj)


def lease_candidate(obj: JSONObject) -> Iterator[Any]:
    """What it would lead, and with which versions."""
    spec = spec_of(obj)
    yield name_of(obj)
    for name in ("leaseName", "binaryVersion", "emulationVersion"):
        yield spec.get(name, "")
    yield age(obj)


def priority_class(obj: JSONObject) -> Iterator[Any]:
    """Its value."""
    yield name_of(obj)
    yield obj.get("value", 0)
    yield bool(obj.get("globalDefault"))
    yield age(obj)
    yield obj.get("preemptionPolicy") or ""


def runtime_class(obj: JSONObject) -> Iterator[Any]:
    """Its handler."""
    yield name_of(obj)
    yield obj.get("handler", "")
    yield age(obj)
