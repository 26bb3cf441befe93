"""Storage classes, CSI objects, attachments; see kubernetes, C{pkg/apis/storage/validation/validation.go}."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...api.errors import Cause, duplicate, forbidden, invalid, required, too_long
from ...api.gostructs import go_struct
from ...api.names import byte_length, qualified_name_problems
from ...api.objectmeta import Parts
from ...api.resource import JSONObject
from ..core.persistentvolume.validation import validate_inline_volume_spec
from ..core.pod.validation.volumes import csi_driver_name
from ..generic.validation.fields import (
    MAX_INT32,
    Causes,
    check,
    dns_subdomain,
    go_json,
    immutable,
    invalid_shown,
    is_selector,
    label_selector,
    not_negative,
    quantity_not_negative,
    selector_shown,
    unsupported,
)

_FS_GROUP: Final = ("File", "None", "ReadWriteOnceWithFSType")
_MAX_PARAMETERS: Final = 256 * 1024
#: How often one term is told to be like others; the reference tells it for each of them.
_MOST_REPEATS: Final = 100


def _provisioner(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.append(required(path))
        return
    name = name.lower()
    causes.extend(invalid(path, name, text) for text in qualified_name_problems(name))


def _parameters(parameters: JSONObject | None, path: str, causes: Causes, *, needed: bool = False) -> None:
    if not parameters:
        if needed:
            causes.append(required(path, "must contain at least one key/value pair"))
        return
    if len(parameters) > 512:
        causes.append(too_long(path, 512))
        return
    size = 0
    for key in sorted(parameters):
        if not key:
            causes.append(invalid(path, key, "field can not be empty."))
        size += len(key.encode()) + len(parameters[key].encode())
    if size > _MAX_PARAMETERS:
        causes.append(too_long(path, _MAX_PARAMETERS))


def validate_storage_class(obj: JSONObject) -> list[Cause]:
    """Who makes volumes of the class, and how."""
    causes: Causes = []
    _provisioner(obj.get("provisioner") or "", "provisioner", causes)
    _parameters(obj.get("parameters"), "parameters", causes)
    reclaim = obj.get("reclaimPolicy")
    if reclaim and reclaim not in ("Delete", "Retain"):
        causes.append(unsupported("reclaimPolicy", reclaim, ("Delete", "Retain")))
    binding = obj.get("volumeBindingMode")
    if binding is None:
        causes.append(required("volumeBindingMode"))
    elif binding not in ("Immediate", "WaitForFirstConsumer"):
        causes.append(unsupported("volumeBindingMode", binding, ("Immediate", "WaitForFirstConsumer")))
    _topologies(obj.get("allowedTopologies") or [], causes)
    return causes


def _topologies(terms: list[JSONObject], causes: Causes) -> None:
    # The reference compares with as many empty terms as there are terms, and then with those before.
    seen: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter({frozenset(): len(terms)})
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}]"
        found: dict[str, frozenset[str]] = {}
        for place, expression in enumerate(term.get("matchLabelExpressions") or ()):
            here = f"{path}.matchLabelExpressions[{place}]"
            values, key = expression.get("values") or [], expression.get("key") or ""
            if not values:
                causes.append(required(f"{here}.values"))
            taken: set[str] = set()
            for number, value in enumerate(values):
                if value in taken:
                    causes.append(duplicate(f"{here}.values[{number}]", value))
                taken.add(value)
            check(key, f"{here}.key", qualified_name_problems, causes)
            if key in found:
                causes.append(duplicate(f"{here}.key", key))
            found[key] = frozenset(values)
        whole = frozenset(found.items())
        causes.extend([duplicate(f"{path}.matchLabelExpressions", "")] * min(seen[whole], _MOST_REPEATS))
        seen[whole] += 1


def validate_storage_class_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What volumes were made by stays."""
    causes: Causes = []
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        immutable(obj.get(name), old.get(name), name, causes)
    return Parts(validate_storage_class(obj), causes)


# --- CSI ---------------------------------------------------------------------------------------------------------


def validate_csi_driver(obj: JSONObject) -> list[Cause]:
    """How a driver wants to be called."""
    causes: Causes = []
    _driver_spec(obj["spec"], causes)
    return causes


def _driver_spec(spec: JSONObject, causes: Causes) -> None:
    if spec.get("attachRequired") is None:
        causes.append(required("spec.attachedRequired"))
    for name in ("podInfoOnMount", "storageCapacity"):
        if spec.get(name) is None:
            causes.append(required(f"spec.{name}"))
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _FS_GROUP:
        causes.append(unsupported("spec.fsGroupPolicy", policy, _FS_GROUP))
    seen: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience") or ""
        if audience in seen:
            causes.append(duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            text = "may not specify a duration less than 10 minutes"
            causes.append(invalid(f"{path}.expirationSeconds", seconds, text))
        elif seconds is not None and seconds > 2**32:
            text = "may not specify a duration larger than 2^32 seconds"
            causes.append(invalid(f"{path}.expirationSeconds", seconds, text))
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            causes.append(unsupported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        text = "must be greater than or equal to 10 seconds"
        causes.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        causes.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, text))


def validate_csi_driver_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What volumes were attached by stays."""
    causes: Causes = []
    spec, before = obj["spec"], old["spec"]
    _driver_spec(spec, causes)
    # The reference misspells the first.
    for name, path in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        immutable(spec.get(name), before.get(name), f"spec.{path}", causes)
    return causes


def validate_csi_node(obj: JSONObject) -> list[Cause]:
    """The drivers of a node, each once."""
    causes: Causes = []
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"].get("drivers") or ()):
        path, name = f"spec.drivers[{index}]", driver.get("name") or ""
        csi_driver_name(name, f"{path}.name", causes)
        if not driver.get("nodeID"):
            causes.append(required(f"{path}.nodeID"))
        elif byte_length(driver["nodeID"]) > 256:
            causes.append(invalid(f"{path}.nodeID", driver["nodeID"], "must be 256 characters or less"))
        not_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count", causes)
        if name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                causes.append(required(path))
            if key in keys:
                causes.append(duplicate(path, key))
            keys.add(key)
            check(key, path, qualified_name_problems, causes)
    return causes


def validate_csi_node_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """A driver stays as it was registered, but for how many volumes it takes, until it is gone."""
    causes = validate_csi_node(obj)
    now: dict[str, list[JSONObject]] = {}
    for driver in obj["spec"].get("drivers") or ():
        now.setdefault(driver.get("name") or "", []).append(_registered(driver))
    for driver in old["spec"].get("drivers") or ():
        was = _registered(driver)
        for shown in now.get(was["Name"], ()):
            immutable(shown, was, "spec.drivers", causes, go_json(shown))
    return causes


def _registered(driver: JSONObject) -> JSONObject:
    return {
        "Name": driver.get("name") or "",
        "NodeID": driver.get("nodeID") or "",
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def validate_csi_capacity(obj: JSONObject, *, odd_values: bool = False) -> list[Cause]:
    """
    How much a driver has, where, for which class.

    @param odd_values: Whether the selector may compare with what no label can be.
    """
    causes: Causes = []
    label_selector(obj.get("nodeTopology"), "nodeTopology", causes, values=not odd_values)
    check(obj.get("storageClassName") or "", "storageClassName", dns_subdomain, causes)
    if obj.get("capacity") is not None:
        quantity_not_negative(obj["capacity"], "capacity", causes)
    return causes


def validate_csi_capacity_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Whose capacity it is stays; odd values in the selector may stay too."""
    stored = old.get("nodeTopology")
    found = validate_csi_capacity(obj, odd_values=stored is not None and not is_selector(stored))
    causes: Causes = []
    topology, name = obj.get("nodeTopology"), obj.get("storageClassName")
    immutable(topology, old.get("nodeTopology"), "nodeTopology", causes, selector_shown(topology))
    immutable(name, old.get("storageClassName"), "storageClassName", causes)
    return Parts(found, causes)


# --- attachments and attributes ----------------------------------------------------------------------------------


def validate_attachment(obj: JSONObject) -> list[Cause]:
    """Which volume is to be at which node."""
    causes: Causes = []
    spec = obj["spec"]
    csi_driver_name(spec.get("attacher") or "", "spec.attacher", causes)
    source = spec.get("source") or {}
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        causes.append(required("spec.source", text))
    elif inline is not None and name is not None:
        causes.append(forbidden("spec.source", text))
    elif name == "":
        causes.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    elif inline is not None:
        validate_inline_volume_spec(inline, "spec.source.inlineVolumeSpec", causes)
    check(spec.get("nodeName") or "", "spec.nodeName", dns_subdomain, causes)
    _attachment_status(obj.get("status") or {}, causes)
    if name is not None:
        check(name, "spec.source.persistentVolumeName", dns_subdomain, causes)
    return causes


def _attachment_status(status: JSONObject, causes: Causes) -> None:
    metadata = status.get("attachmentMetadata") or {}
    if sum(byte_length(key) + byte_length(value) for key, value in metadata.items()) > _MAX_PARAMETERS:
        causes.append(too_long("status.attachmentMetadata", _MAX_PARAMETERS))
    for name in ("attachError", "detachError"):
        error = status.get(name) or {}
        if byte_length(error.get("message") or "") > 1024:
            # The limit that the reference tells is another one's.
            causes.append(too_long(f"status.{name}.message", _MAX_PARAMETERS))
        code = error.get("errorCode")
        if code is not None and code < 0:
            causes.append(invalid(f"status.{name}.errorCode", code, f"must be between 0 and {MAX_INT32}, inclusive"))


def validate_attachment_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The spec stays; what is said of the attachment has its limits."""
    causes = validate_attachment(obj)
    if obj["spec"] != old["spec"]:
        shown = go_struct(obj["spec"], "storage.VolumeAttachmentSpec")
        causes.append(invalid_shown("spec", go_json(shown), "field is immutable"))
    return causes


def validate_attributes_class(obj: JSONObject) -> list[Cause]:
    """A driver and what it is to be told."""
    causes: Causes = []
    _provisioner(obj.get("driverName") or "", "driverName", causes)
    _parameters(obj.get("parameters"), "parameters", causes, needed=True)
    return causes


def validate_attributes_class_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Driver and parameters stay."""
    causes: Causes = []
    for name in ("driverName", "parameters"):
        if (obj.get(name) or None) != (old.get(name) or None):
            causes.append(forbidden(name, f"updates to {name} are forbidden."))
    return Parts(causes, validate_attributes_class(obj))
