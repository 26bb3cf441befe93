"""
Validation of StorageClasses, CSI objects and VolumeAttachments.

See kubernetes, C{pkg/apis/storage/validation/validation.go}.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...api.errors import FieldError, duplicate, forbidden, invalid, required, too_long
from ...api.gostructs import go_struct
from ...api.names import byte_length, validate_qualified_name
from ...api.objectmeta import UpdateErrors
from ...api.resource import JSONObject
from ..core.persistentvolume.validation import validate_inline_volume_spec
from ..core.pod.validation.volumes import csi_driver_name
from ..generic.validation.fields import (
    MAX_INT32,
    ErrorList,
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
#: Maximum number of duplicate errors for one term; the reference reports each.
_MAX_REPEATS: Final = 100


def _validate_provisioner(name: str, path: str, errors: ErrorList) -> None:
    if not name:
        errors.append(required(path))
        return
    name = name.lower()
    errors.extend(invalid(path, name, text) for text in validate_qualified_name(name))


def _validate_parameters(parameters: JSONObject | None, path: str, errors: ErrorList, *, needed: bool = False) -> None:
    if not parameters:
        if needed:
            errors.append(required(path, "must contain at least one key/value pair"))
        return
    if len(parameters) > 512:
        errors.append(too_long(path, 512))
        return
    size = 0
    for key in sorted(parameters):
        if not key:
            errors.append(invalid(path, key, "field can not be empty."))
        size += len(key.encode()) + len(parameters[key].encode())
    if size > _MAX_PARAMETERS:
        errors.append(too_long(path, _MAX_PARAMETERS))


def validate_storage_class(obj: JSONObject) -> list[FieldError]:
    """Validate a StorageClass: provisioner, parameters and policies."""
    errors: ErrorList = []
    _validate_provisioner(obj.get("provisioner") or "", "provisioner", errors)
    _validate_parameters(obj.get("parameters"), "parameters", errors)
    reclaim = obj.get("reclaimPolicy")
    if reclaim and reclaim not in ("Delete", "Retain"):
        errors.append(unsupported("reclaimPolicy", reclaim, ("Delete", "Retain")))
    binding = obj.get("volumeBindingMode")
    if binding is None:
        errors.append(required("volumeBindingMode"))
    elif binding not in ("Immediate", "WaitForFirstConsumer"):
        errors.append(unsupported("volumeBindingMode", binding, ("Immediate", "WaitForFirstConsumer")))
    _validate_topologies(obj.get("allowedTopologies") or [], errors)
    return errors


def _validate_topologies(terms: list[JSONObject], errors: ErrorList) -> None:
    # The reference compares with as many empty terms as there are terms, and then with those before.
    seen: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter({frozenset(): len(terms)})
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}]"
        values_by_key: dict[str, frozenset[str]] = {}
        for place, expression in enumerate(term.get("matchLabelExpressions") or ()):
            item_path = f"{path}.matchLabelExpressions[{place}]"
            values, key = expression.get("values") or [], expression.get("key") or ""
            if not values:
                errors.append(required(f"{item_path}.values"))
            seen_values: set[str] = set()
            for number, value in enumerate(values):
                if value in seen_values:
                    errors.append(duplicate(f"{item_path}.values[{number}]", value))
                seen_values.add(value)
            check(key, f"{item_path}.key", validate_qualified_name, errors)
            if key in values_by_key:
                errors.append(duplicate(f"{item_path}.key", key))
            values_by_key[key] = frozenset(values)
        whole = frozenset(values_by_key.items())
        errors.extend([duplicate(f"{path}.matchLabelExpressions", "")] * min(seen[whole], _MAX_REPEATS))
        seen[whole] += 1


def validate_storage_class_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the immutable fields are unchanged."""
    errors: ErrorList = []
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if obj.get(name) != old.get(name):
            earlier = forbidden(name, f"updates to {name} are forbidden.")
            errors.append(invalid(name, obj.get(name), "field is immutable").since(1, 36, earlier))
    name = "volumeBindingMode"
    immutable(obj.get(name), old.get(name), name, errors)
    return UpdateErrors(validate_storage_class(obj), errors)


# --- CSI ---------------------------------------------------------------------------------------------------------


def validate_csi_driver(obj: JSONObject) -> list[FieldError]:
    """Validate a CSIDriver."""
    errors: ErrorList = []
    _validate_driver_spec(obj["spec"], errors)
    return errors


def _validate_driver_spec(spec: JSONObject, errors: ErrorList) -> None:
    if spec.get("attachRequired") is None:
        errors.append(required("spec.attachedRequired"))
    for name in ("podInfoOnMount", "storageCapacity"):
        if spec.get(name) is None:
            errors.append(required(f"spec.{name}"))
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _FS_GROUP:
        errors.append(unsupported("spec.fsGroupPolicy", policy, _FS_GROUP))
    seen: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience") or ""
        if audience in seen:
            errors.append(duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            text = "may not specify a duration less than 10 minutes"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, text))
        elif seconds is not None and seconds > 2**32:
            text = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, text))
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            errors.append(unsupported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        text = "must be greater than or equal to 10 seconds"
        errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, text))


def validate_csi_driver_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the immutable fields are unchanged."""
    errors: ErrorList = []
    spec, before = obj["spec"], old["spec"]
    _validate_driver_spec(spec, errors)
    # The reference misspells the first.
    for name, path, go_type in (
        ("attachRequired", "attachedRequired", "*bool"),
        ("volumeLifecycleModes", "volumeLifecycleModes", "[]storage.VolumeLifecycleMode"),
    ):
        immutable(spec.get(name), before.get(name), f"spec.{path}", errors, go_type=go_type)
    return errors


def validate_csi_node(obj: JSONObject) -> list[FieldError]:
    """Validate the drivers of a node, whose names must be unique."""
    errors: ErrorList = []
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"].get("drivers") or ()):
        path, name = f"spec.drivers[{index}]", driver.get("name") or ""
        csi_driver_name(name, f"{path}.name", errors)
        if not driver.get("nodeID"):
            errors.append(required(f"{path}.nodeID"))
        elif byte_length(driver["nodeID"]) > 256:
            errors.append(invalid(f"{path}.nodeID", driver["nodeID"], "must be 256 characters or less"))
        not_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count", errors)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                errors.append(required(path))
            if key in keys:
                errors.append(duplicate(path, key))
            keys.add(key)
            check(key, path, validate_qualified_name, errors)
    return errors


def validate_csi_node_update(obj: JSONObject, old: JSONObject, *, counts_change: bool) -> list[FieldError]:
    """
    Validate that registered drivers are unchanged; they can be removed.

    @param counts_change: Whether the number of their volumes may change.
    """
    errors = validate_csi_node(obj)
    # They were reported twice.
    errors += [error.before(1, 36) for error in errors]
    now: dict[str, list[JSONObject]] = {}
    for driver in obj["spec"].get("drivers") or ():
        now.setdefault(driver.get("name") or "", []).append(_registered(driver, counts=not counts_change))
    for driver in old["spec"].get("drivers") or ():
        was = _registered(driver, counts=not counts_change)
        for shown in now.get(was["Name"], ()):
            if shown != was:
                text, go_type = go_json(shown), "storage.CSINodeDriver"
                driver = {name[0].lower() + name[1:]: value for name, value in shown.items()}
                errors.append(invalid_shown("spec.drivers", text, "field is immutable", driver, go_type))
    return errors


def _registered(driver: JSONObject, *, counts: bool) -> JSONObject:
    allocatable = driver.get("allocatable")
    shown = None if allocatable is None else {"Count": allocatable.get("count")}
    return {
        "Name": driver.get("name") or "",
        "NodeID": driver.get("nodeID") or "",
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": shown if counts else None,
    }


def validate_csi_capacity(obj: JSONObject, *, odd_values: bool = False) -> list[FieldError]:
    """
    Validate a CSIStorageCapacity: storage class, topology and quantities.

    @param odd_values: Whether the selector may have invalid label values.
    """
    errors: ErrorList = []
    label_selector(obj.get("nodeTopology"), "nodeTopology", errors, values=not odd_values)
    check(obj.get("storageClassName") or "", "storageClassName", dns_subdomain, errors)
    if obj.get("capacity") is not None:
        quantity_not_negative(obj["capacity"], "capacity", errors)
    return errors


def validate_csi_capacity_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that topology and storage class are unchanged; stored invalid label values are accepted."""
    stored = old.get("nodeTopology")
    messages = validate_csi_capacity(obj, odd_values=stored is not None and not is_selector(stored))
    errors: ErrorList = []
    topology, name = obj.get("nodeTopology"), obj.get("storageClassName")
    immutable(
        topology, old.get("nodeTopology"), "nodeTopology", errors, selector_shown(topology), go_type="*v1.LabelSelector"
    )
    immutable(name, old.get("storageClassName"), "storageClassName", errors)
    return UpdateErrors(messages, errors)


# --- attachments and attributes ----------------------------------------------------------------------------------


def validate_attachment(obj: JSONObject) -> list[FieldError]:
    """Validate a VolumeAttachment: attacher, node and exactly one source."""
    errors: ErrorList = []
    spec = obj["spec"]
    attacher: ErrorList = []
    csi_driver_name(spec.get("attacher") or "", "spec.attacher", attacher)
    errors += [error.since(1, 36) for error in attacher]
    if not spec.get("attacher"):
        errors.append(required("spec.attacher").before(1, 36))
    source = spec.get("source") or {}
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        errors.append(required("spec.source", text))
    elif inline is not None and name is not None:
        errors.append(forbidden("spec.source", text))
    elif name == "":
        errors.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    elif inline is not None:
        validate_inline_volume_spec(inline, "spec.source.inlineVolumeSpec", errors)
    check(spec.get("nodeName") or "", "spec.nodeName", dns_subdomain, errors)
    _validate_attachment_status(obj.get("status") or {}, errors)
    errors += [error.before(1, 36) for error in attacher]
    if name is not None:
        check(name, "spec.source.persistentVolumeName", dns_subdomain, errors)
    return errors


def _validate_attachment_status(status: JSONObject, errors: ErrorList) -> None:
    metadata = status.get("attachmentMetadata") or {}
    if sum(byte_length(key) + byte_length(value) for key, value in metadata.items()) > _MAX_PARAMETERS:
        errors.append(too_long("status.attachmentMetadata", _MAX_PARAMETERS))
    for name in ("attachError", "detachError"):
        error = status.get(name) or {}
        if byte_length(error.get("message") or "") > 1024:
            # The reference's message has the limit of another field.
            errors.append(too_long(f"status.{name}.message", _MAX_PARAMETERS))
        code = error.get("errorCode")
        if code is not None and code < 0:
            errors.append(invalid(f"status.{name}.errorCode", code, f"must be between 0 and {MAX_INT32}, inclusive"))


def validate_attachment_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the spec is unchanged, and the status."""
    errors = validate_attachment(obj)
    if obj["spec"] != old["spec"]:
        shown = go_struct(obj["spec"], "storage.VolumeAttachmentSpec")
        go_type = "storage.VolumeAttachmentSpec"
        errors.append(invalid_shown("spec", go_json(shown), "field is immutable", obj["spec"], go_type))
    return errors


def validate_attributes_class(obj: JSONObject) -> list[FieldError]:
    """Validate a driver and its opaque parameters."""
    errors: ErrorList = []
    _validate_provisioner(obj.get("driverName") or "", "driverName", errors)
    _validate_parameters(obj.get("parameters"), "parameters", errors, needed=True)
    return errors


def validate_attributes_class_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that driver and parameters are unchanged."""
    errors: ErrorList = []
    for name in ("driverName", "parameters"):
        if (obj.get(name) or None) != (old.get(name) or None):
            errors.append(forbidden(name, f"updates to {name} are forbidden."))
    return UpdateErrors(errors, validate_attributes_class(obj))
