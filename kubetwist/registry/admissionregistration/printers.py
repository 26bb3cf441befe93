"""Rows of what decides: RBAC, admission, flow control, certificates; and of APIs, devices and migrations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...api.resource import JSONObject
from ..generic.printers.ages import age, human_duration, since
from ..generic.printers.texts import NONE, UNSET, condition, first_few, name_of, spec_of, status_of


def role_binding(obj: JSONObject) -> Iterator[Any]:
    """The role, and who has it."""
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or ()
    yield name_of(obj)
    yield f"{role.get('kind', '')}/{role.get('name', '')}"
    yield age(obj)
    for kind in ("User", "Group", "ServiceAccount"):
        yield ", ".join(_subject(subject) for subject in subjects if subject.get("kind") == kind)


def _subject(subject: JSONObject) -> str:
    name: str = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        return f"{subject.get('namespace', '')}/{name}"
    return name


def webhook_configuration(obj: JSONObject) -> Iterator[Any]:
    """How many webhooks it has."""
    yield name_of(obj)
    yield len(obj.get("webhooks") or ())
    yield age(obj)


def admission_policy(rules: str) -> Callable[[JSONObject], Iterator[Any]]:
    """The row of a policy whose rules are under C{rules}."""

    def row(obj: JSONObject) -> Iterator[Any]:
        spec = spec_of(obj)
        parameters = spec.get("paramKind")
        yield name_of(obj)
        yield len(spec.get(rules) or ())
        yield UNSET if parameters is None else f"{parameters.get('apiVersion', '')}/{parameters.get('kind', '')}"
        yield age(obj)

    return row


def admission_policy_binding(obj: JSONObject) -> Iterator[Any]:
    """Which policy, with which parameters."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("policyName", "")
    yield _parameters(spec.get("paramRef"))
    yield age(obj)


def _parameters(reference: JSONObject | None) -> str:
    if reference is None:
        return UNSET
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return UNSET if selector is None else _go_selector(selector)


def _go_selector(selector: JSONObject) -> str:
    """A label selector as Go's generated String method prints it."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def flow_schema_order(obj: JSONObject) -> tuple[int, str]:
    """Schemas are shown in the order in which they are tried."""
    return (obj.get("spec") or {}).get("matchingPrecedence") or 0, obj["metadata"].get("name") or ""


def flow_schema(obj: JSONObject) -> Iterator[Any]:
    """Its level, and whether that exists."""
    spec = spec_of(obj)
    method = spec.get("distinguisherMethod")
    dangling = condition(status_of(obj), "Dangling")
    yield name_of(obj)
    yield (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    yield spec.get("matchingPrecedence", 0)
    yield NONE if method is None else method.get("type", "")
    yield age(obj)
    yield "?" if dangling is None else dangling.get("status", "")


def priority_level_configuration(obj: JSONObject) -> Iterator[Any]:
    """Its shares and queues, where it has limits."""
    spec = spec_of(obj)
    limited = spec.get("limited")
    queuing = None if limited is None else (limited.get("limitResponse") or {}).get("queuing")
    yield name_of(obj)
    yield spec.get("type", "")
    if limited is None:
        yield NONE
    else:
        yield limited.get("nominalConcurrencyShares", limited.get("assuredConcurrencyShares", 0))
    for name in ("queues", "handSize", "queueLengthLimit"):
        yield NONE if queuing is None else queuing.get(name, 0)
    yield age(obj)


def certificate_signing_request(obj: JSONObject) -> Iterator[Any]:
    """Who asks whom, and how it went."""
    spec, status = spec_of(obj), status_of(obj)
    seconds = spec.get("expirationSeconds")
    types = {one.get("type") for one in status.get("conditions") or ()}
    states = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    if "Failed" in types:
        states.append("Failed")
    if status.get("certificate"):
        states.append("Issued")
    yield name_of(obj)
    yield age(obj)
    yield spec.get("signerName") or NONE
    yield spec.get("username", "")
    yield NONE if seconds is None else human_duration(seconds)
    yield ",".join(states)


def cluster_trust_bundle(obj: JSONObject) -> Iterator[Any]:
    """Its signer; there is no age."""
    yield name_of(obj)
    yield spec_of(obj).get("signerName") or NONE


def pod_certificate_request(obj: JSONObject) -> Iterator[Any]:
    """For which pod, and how it went; there is no age."""
    spec = spec_of(obj)
    state = "Pending"
    for one in status_of(obj).get("conditions") or ():
        if one.get("type") in ("Issued", "Denied", "Failed"):
            state = one["type"]
    yield name_of(obj)
    for name in ("podName", "serviceAccountName", "nodeName", "signerName"):
        yield spec.get(name, "")
    yield state


def api_service(obj: JSONObject) -> Iterator[Any]:
    """Who serves it, and whether it can be reached."""
    backend = spec_of(obj).get("service")
    available = condition(status_of(obj), "Available")
    yield name_of(obj)
    yield "Local" if backend is None else f"{backend.get('namespace', '')}/{backend.get('name', '')}"
    if available is None:
        yield "Unknown"
    elif available.get("status") != "True" and available.get("reason"):
        yield f"{available.get('status', '')} ({available['reason']})"
    else:
        yield available.get("status", "")
    yield age(obj)


def storage_version(obj: JSONObject) -> Iterator[Any]:
    """What servers encode in."""
    status = status_of(obj)
    servers = [
        f"{server.get('apiServerID', '')}={server.get('encodingVersion', '')}"
        for server in status.get("storageVersions") or ()
    ]
    yield name_of(obj)
    yield status.get("commonEncodingVersion") or UNSET
    yield first_few(servers, 3)
    yield age(obj)


def storage_version_migration(obj: JSONObject) -> Iterator[Any]:
    """What is migrated; there is no age."""
    resource = spec_of(obj).get("resource") or {}
    yield name_of(obj)
    yield f"{resource.get('resource', '')}.{resource.get('group', '')}"


def resource_claim(obj: JSONObject) -> Iterator[Any]:
    """Its state in a word or two."""
    status = status_of(obj)
    deleted = bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    yield name_of(obj)
    yield ",".join(states)
    yield age(obj)


def resource_slice(obj: JSONObject) -> Iterator[Any]:
    """Whose devices it lists."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("nodeName") or ""
    yield spec.get("driver", "")
    yield (spec.get("pool") or {}).get("name", "")
    yield age(obj)


def device_taint_rule(obj: JSONObject) -> Iterator[Any]:
    """The taint, not what it is put on."""
    taint = spec_of(obj).get("taint") or {}
    yield name_of(obj)
    for name in ("key", "value", "effect"):
        yield taint.get(name, "")
    added = taint.get("timeAdded")
    yield "" if added is None else since(added)
    yield age(obj)


def status(obj: JSONObject) -> Iterator[Any]:
    """A C{Status}, which has no name."""
    for name in ("status", "reason", "message"):
        yield obj.get(name, "")
