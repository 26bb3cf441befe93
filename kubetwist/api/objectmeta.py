"""
Validation of object metadata, with the reference's messages, order and repetition of errors.

There are two sets of rules. One validates an object (L{validate_object_meta}); the other compares it with the old
object, and validates labels, annotations, owners and managers again. On an update the generic registry applies both,
then the kind applies one or both once or several times, with an additional rule for finalizers. Repeated errors are
kept, so:

  - a bad label on create is reported once: the registry validates only if the kind found no errors;
  - on update it is reported three times for a kind that compares, as Deployment does;
  - and four times for a kind that also validates the new object as on create, as ConfigMap does;
  - a bad finalizer, uid or deletionTimestamp, which fewer rules check, is reported less often.

L{validate_metadata_on_create} and L{validate_metadata_on_update} implement this.

See kubernetes/apimachinery, C{pkg/api/validation/objectmeta.go}; kubernetes/apiserver, C{pkg/registry/rest/update.go};
kubernetes, C{pkg/apis/core/validation/validation.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import orjson

from .errors import FieldError, errors_in_release, forbidden, invalid, required, too_long, valued
from .featuregates import FeatureGates
from .go.quote import quoted
from .jsontypes import JSONObject, JSONValue
from .listoptions import is_field_manager, validate_field_manager
from .names import (
    ValidateNameFunc,
    are_labels,
    byte_length,
    is_qualified_name,
    validate_dns1123_label,
    validate_label_value,
    validate_path_segment_name,
    validate_qualified_name,
)

Meta = Mapping[str, JSONValue]

#: Maximum size of all keys and values, in bytes.
ANNOTATIONS_LIMIT: Final = 256 << 10

#: The fields of metadata, in the order of the struct in Go.
METADATA: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)

_IMMUTABLE: Final = "field is immutable"
#: Fields that only the server changes, with their Go types.
_CHANGED_BY_SERVER: Final = (
    ("creationTimestamp", "v1.Time"),
    ("deletionTimestamp", "*v1.Time"),
    ("deletionGracePeriodSeconds", "*int64"),
)
_STANDARD_FINALIZERS: Final = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_SUBRESOURCE_LENGTH: Final = 256


#: A rule that a kind applies to the metadata of updates: compare with the old object, or validate the new one.
Rule = Literal["compare", "whole"]


class UpdateErrors(list[FieldError]):
    """
    The validation errors of an update beyond its metadata, for kinds that validate metadata in the middle.

    @ivar first: Number of errors before the kind's last validation of metadata.
    """

    def __init__(self, first: Sequence[FieldError], second: Sequence[FieldError] = ()) -> None:
        super().__init__([*first, *second])
        self.first = len(first)

    def in_release(self, features: FeatureGates) -> UpdateErrors:
        """Return the errors that a release reports."""
        first, second = self[: self.first], self[self.first :]
        return UpdateErrors(errors_in_release(first, features), errors_in_release(second, features))


def validate_metadata_on_create(
    meta: Meta,
    namespaced: bool,
    validate_name: ValidateNameFunc,
    path: str = "metadata",
    *,
    standard_finalizers: bool = True,
) -> list[FieldError]:
    """
    Validate the metadata of a new object.

    @param meta: The metadata.
    @param namespaced: Whether the kind is namespaced.
    @param validate_name: The kind's rule for names.
    @param path: The path of the metadata in errors.
    @param standard_finalizers: Whether finalizers without a domain must be known ones, as for all built-in kinds.
    """
    errors = validate_object_meta(meta, namespaced, validate_name, path)
    if standard_finalizers and "finalizers" in meta:
        errors += _validate_standard_finalizers(meta, path)
    return errors


def validate_metadata_on_update(
    new: Meta,
    old: Meta,
    namespaced: bool,
    validate_name: ValidateNameFunc,
    path: str = "metadata",
    *,
    rules: Sequence[Rule] = ("compare",),
    standard_finalizers: bool = True,
    found: Sequence[FieldError] = (),
) -> list[FieldError]:
    """
    Return all validation errors of an update; errors of metadata are repeated as in the reference.

    @param new: The new metadata.
    @param old: The metadata of the stored object.
    @param namespaced: Whether the kind is namespaced.
    @param validate_name: The kind's rule for names.
    @param path: The path of the metadata in errors.
    @param rules: The kind's metadata rules in order, which follow the two of the registry.
    @param standard_finalizers: Whether finalizers without a domain must be known ones.
    @param found: The errors beyond the metadata: appended after all rules, or around the last one for L{UpdateErrors}.
    """
    # Each rule validates the same content.
    content = _validate_content(new, namespaced, path)
    changes = _compare_metadata(new, old, path)
    registry_name = _validate_name(new, validate_path_segment_name, path)
    name = _validate_name(new, validate_name, path) if "whole" in rules else []
    finalizers = _validate_standard_finalizers(new, path) if standard_finalizers and "finalizers" in new else []
    if not (found or changes or registry_name or name or finalizers or any(content)):
        return []
    compared = [*changes, *content.both, *content.managed_fields]
    errors = [*registry_name, *content.all_errors(), *compared]
    first = found.first if rules and isinstance(found, UpdateErrors) else 0
    for place, rule in enumerate(rules, 1):
        if place == len(rules):
            errors += found[:first]
        errors += compared if rule == "compare" else [*name, *content.all_errors()]
        errors += finalizers
    return [*errors, *found[first:]]


class _ContentErrors(NamedTuple):
    """
    The errors of the metadata that do not depend on the kind or the old object.

    @ivar first: The errors of the namespace and the generation, which a comparison does not report.
    @ivar both: The errors of labels, annotations and owners, which both sets of rules report.
    @ivar finalizers: The errors of finalizers, which a comparison does not report.
    @ivar managed_fields: The errors of managed fields, which both report last.
    """

    first: list[FieldError]
    both: list[FieldError]
    finalizers: list[FieldError]
    managed_fields: list[FieldError]

    def all_errors(self) -> list[FieldError]:
        """Return all errors in the order of L{validate_object_meta}, where errors of the name are first."""
        return [*self.first, *self.both, *self.finalizers, *self.managed_fields]


def validate_object_meta(
    meta: Meta, namespaced: bool, validate_name: ValidateNameFunc, path: str = "metadata"
) -> list[FieldError]:
    """
    Validate the metadata of an object, whose name is generated already.

    @param meta: The metadata.
    @param namespaced: Whether the kind is namespaced.
    @param validate_name: The kind's rule for names.
    @param path: The path of the metadata in errors.
    """
    content = _validate_content(meta, namespaced, path)
    return [*_validate_name(meta, validate_name, path), *content.all_errors()]


def _validate_name(meta: Meta, validate_name: ValidateNameFunc, path: str) -> list[FieldError]:
    """Validate the name and its prefix; see L{validate_object_meta}."""
    errors: list[FieldError] = []
    base = meta.get("generateName")
    if base and (problems := validate_name(base, True)):
        errors += [invalid(f"{path}.generateName", base, text) for text in problems]
    name = meta.get("name")
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    elif problems := validate_name(name, False):
        errors += [invalid(f"{path}.name", name, text) for text in problems]
    return errors


def _validate_content(meta: Meta, namespaced: bool, path: str) -> _ContentErrors:
    """Validate the metadata behind the name; see L{validate_object_meta}."""
    first: list[FieldError] = []
    namespace = meta.get("namespace")
    if not namespaced:
        if namespace:
            first.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    elif not namespace:
        first.append(required(f"{path}.namespace"))
    elif problems := validate_dns1123_label(namespace):
        first += [invalid(f"{path}.namespace", namespace, text) for text in problems]
    generation = meta.get("generation")
    if generation is not None and generation < 0:
        first.append(invalid(f"{path}.generation", generation, "must be greater than or equal to 0"))
    both: list[FieldError] = []
    if "labels" in meta:
        both += validate_labels(meta["labels"], f"{path}.labels")
    if "annotations" in meta:
        both += validate_annotations(meta["annotations"], f"{path}.annotations")
    if "ownerReferences" in meta:
        both += validate_owner_references(meta["ownerReferences"], f"{path}.ownerReferences")
    return _ContentErrors(
        first,
        both,
        validate_finalizers(meta["finalizers"], f"{path}.finalizers") if "finalizers" in meta else [],
        validate_managed_fields(meta["managedFields"], f"{path}.managedFields") if "managedFields" in meta else [],
    )


def _compare_metadata(new: Meta, old: Meta, path: str) -> list[FieldError]:
    """
    Return the errors of changes; errors of the content follow.

    The registry validates the resourceVersion, and sets it where it is optional.
    """
    errors: list[FieldError] = []
    if old.get("deletionTimestamp") is not None:
        extra = set(new.get("finalizers") or ()).difference(old.get("finalizers") or ())
        if extra:
            shown = ", ".join(quoted(name) for name in sorted(extra))
            errors.append(
                forbidden(
                    f"{path}.finalizers",
                    "no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers []string{{{shown}}}",
                )
            )
    generation = new.get("generation") or 0
    if generation < (old.get("generation") or 0):
        errors.append(invalid(f"{path}.generation", generation, "must not be decremented"))
    new_get, old_get = new.get, old.get
    for name in ("name", "namespace", "uid"):
        value = new_get(name)
        if value != old_get(name) and (value or "") != (old_get(name) or ""):
            errors.append(invalid(f"{path}.{name}", value or "", _IMMUTABLE))
    for name, go_type in _CHANGED_BY_SERVER:
        value = new_get(name)
        if value != old_get(name):
            errors.append(invalid(f"{path}.{name}", value, _IMMUTABLE, go_type))
    return errors


def validate_labels(labels: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Validate labels."""
    errors: list[FieldError] = []
    if not labels or are_labels(labels):
        return errors
    for key, value in labels.items():
        errors += [invalid(path, key, text) for text in validate_qualified_name(key)]
        errors += [invalid(path, value, text) for text in validate_label_value(value)]
    return errors


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Validate annotations: their keys, ignoring case, and their total size."""
    errors: list[FieldError] = []
    size = 0
    for key, value in (annotations or {}).items():
        # Without the calls of byte_length, of which there are two for each annotation.
        size += len(key) if key.isascii() else byte_length(key)
        size += len(value) if value.isascii() else byte_length(value)
        if not is_qualified_name(key):
            errors += [invalid(path, key, text) for text in validate_qualified_name(key.lower())]
    if size > ANNOTATIONS_LIMIT:
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors


def validate_owner_references(owners: Sequence[Meta] | None, path: str) -> list[FieldError]:
    """Validate owner references."""
    errors: list[FieldError] = []
    controller = ""
    for owner in owners or ():
        errors += _validate_owner_reference(owner, path)
        if owner.get("controller"):
            current = f"{owner.get('kind') or ''}/{owner.get('name') or ''}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {current}"
                )
                errors.append(_invalid_owners(path, list(owners or ()), detail, "[]v1.OwnerReference"))
            else:
                controller = current
    return errors


def _validate_owner_reference(owner: Meta, path: str) -> list[FieldError]:
    errors = []
    api_version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
    group, _, version = api_version.rpartition("/")
    if not version or "/" in group:
        errors.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            error = invalid(f"{path}.{name}", "", "must not be empty")
            errors.append(error.reworded(1, 34, f"{name} must not be empty"))
    if kind == "Event" and version == "v1" and not group:
        detail = "/v1, Kind=Event is disallowed from being an owner"
        errors.append(_invalid_owners(path, owner, detail, "v1.OwnerReference"))
    return errors


def _invalid_owners(path: str, value: JSONValue, detail: str, go_type: str) -> FieldError:
    """Return the error for one or several owner references."""
    ordered = [_go_owner(one) for one in value] if isinstance(value, list) else _go_owner(value)
    shown = orjson.dumps(ordered).decode()
    return valued("FieldValueInvalid", "Invalid value", path, value, detail, go_type, shown)


def _go_owner(owner: Meta) -> JSONObject:
    """Return an owner reference with its fields in Go's order."""
    ordered = {name: owner.get(name) or "" for name in ("apiVersion", "kind", "name", "uid")}
    for name in ("controller", "blockOwnerDeletion"):
        if owner.get(name) is not None:
            ordered[name] = owner[name]
    return ordered


def validate_finalizers(finalizers: Sequence[str] | None, path: str) -> list[FieldError]:
    """Validate finalizers independently of the kind."""
    errors = [invalid(path, name, text) for name in finalizers or () for text in validate_qualified_name(name)]
    if finalizers and "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, list(finalizers), detail))
    return errors


def _validate_standard_finalizers(meta: Meta, path: str) -> list[FieldError]:
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{path}.finalizers[{index}]", name, detail)
        for index, name in enumerate(meta.get("finalizers") or ())
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]


def validate_managed_fields(entries: Sequence[Meta] | None, path: str) -> list[FieldError]:
    """Validate the managed fields."""
    errors: list[FieldError] = []
    for index, entry in enumerate(entries or ()):
        operation = entry.get("operation") or ""
        if operation not in ("Apply", "Update"):
            errors.append(invalid(f"{path}[{index}].operation", operation, "must be `Apply` or `Update`"))
        fields_type = entry.get("fieldsType") or ""
        if fields_type not in ("", "FieldsV1"):
            errors.append(invalid(f"{path}[{index}].fieldsType", fields_type, "must be `FieldsV1`"))
        manager = entry.get("manager") or ""
        if not is_field_manager(manager):
            errors += validate_field_manager(f"{path}[{index}].manager", manager)
        if "subresource" in entry and byte_length(entry["subresource"] or "") > _SUBRESOURCE_LENGTH:
            errors.append(too_long(f"{path}[{index}].subresource", _SUBRESOURCE_LENGTH))
    return errors
