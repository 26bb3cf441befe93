"""Strategy of one version of a custom resource, from its CRD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...api.errors import FieldError, invalid
from ...api.go.quote import quoted
from ...api.go.text import go_type
from ...api.jsonequality import same_json
from ...api.jsontypes import JSONValue
from ...api.names import validate_qualified_name
from ...api.resource import JSONObject
from ...schema.validation.listrules import (
    validate_embedded_resources,
    validate_lists,
)
from ...schema.validation.validator import (
    CorrelatedObject,
    SchemaValidator,
    ValidationBudgetExceeded,
)
from ..generic.strategy import Strategy

if TYPE_CHECKING:
    from .crd import CustomVersion

_STANDARD_FINALIZERS: Final = frozenset(("orphan", "foregroundDeletion", "kubernetes"))
#: Reasons of schema errors because of which CEL rules are skipped.
_BLOCKING: Final = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
_UNCHECKED: Final = invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
)
#: Metadata that writes of the status, and mutations of them, cannot change.
_IDENTITY: Final = ("name", "generateName", "namespace", "uid")
_INT32: Final = (1 << 31) - 1


class CustomStrategy(Strategy):
    """Validates objects of one version, whose structure was checked by decoding."""

    has_generation = True
    allow_unconditional_update = False
    standard_finalizers = False

    def __init__(self, version: CustomVersion) -> None:
        self.version = version
        self.has_status = version.has_status
        super().__init__()

    def configure(self) -> None:
        """Decide whether errors of unchanged values are ignored."""
        self._ratchets = self.features.enabled("CRDValidationRatcheting")

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Keep everything except for the status."""
        super().prepare_for_status_update(obj, old)
        meta, before = obj["metadata"], old["metadata"]
        for name in _IDENTITY:
            if name in before:
                meta[name] = before[name]
            else:
                meta.pop(name, None)

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return whether fields other than metadata changed; a status that is a subresource does not count."""
        return not same_json(_content(obj), _content(old))

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate by the schema, then the paths of the scale, embedded resources and lists."""
        errors = self._validate_schema(self.whole(obj), None)
        errors += self._validate_scale(obj, spec=True)
        if self.version.has_embedded_resources:
            errors += validate_embedded_resources(obj, self.version.type.schema)
        if self.version.has_unique_lists:
            errors += validate_lists(obj, self.version.type.schema)
        return self._with_rules(errors, obj, None)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate a change; errors of unchanged values are ignored (ratcheting) if the feature is enabled."""
        errors = self._validate_schema(self.whole(obj), self.whole(old) if self._ratchets else None)
        errors += self._validate_scale(obj, spec=True)
        if self.version.has_embedded_resources:
            errors += validate_embedded_resources(obj, self.version.type.schema)
        return self._with_rules(errors + self._validate_new_lists(obj, old), obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the status by its schema."""
        errors: list[FieldError] = []
        schema = self.version.values.properties.get("status")
        if schema is not None and "status" in obj:
            ratchets = self._ratchets and "status" in old
            before = CorrelatedObject(obj["status"], old["status"], schema) if ratchets else None
            errors += _validate_value_schema(schema, obj["status"], "status", before)
        errors += self._validate_scale(obj, spec=False)
        return self._with_rules(errors + self._validate_new_lists(obj, old), obj, old)

    def _with_rules(self, errors: list[FieldError], obj: JSONObject, old: JSONObject | None) -> list[FieldError]:
        """Add the errors of CEL rules, or the error that they were skipped since the object violates its schema."""
        rules = self.version.rules
        if rules is None:
            return errors
        if any(field_error.reason in _BLOCKING for field_error in errors):
            return [*errors, _UNCHECKED]
        whole, before = self.whole(obj), None if old is None else self.whole(old)
        ratchets = before is not None and self._ratchets
        correlation = CorrelatedObject(whole, before, self.version.values) if ratchets else None
        messages, _ = rules.validate(whole, before, correlation=correlation)
        return errors + messages

    def whole(self, obj: JSONObject) -> JSONObject:
        """Return the object with kind and apiVersion, which a schema may validate."""
        gvk = self.version.gvk
        return {**obj, "kind": gvk.kind, "apiVersion": gvk.api_version}

    def _validate_schema(self, obj: JSONObject, old: JSONObject | None) -> list[FieldError]:
        schema = self.version.values
        return _validate_value_schema(schema, obj, "", None if old is None else CorrelatedObject(obj, old, schema))

    def _validate_new_lists(self, obj: JSONObject, old: JSONObject) -> list[FieldError]:
        if not self.version.has_unique_lists:
            return []
        schema = self.version.type.schema
        errors = validate_lists(obj, schema)
        return [] if errors and validate_lists(old, schema) else errors

    def _validate_scale(self, obj: JSONObject, *, spec: bool) -> list[FieldError]:
        scale = self.version.scale
        if scale is None:
            return []
        errors = _validate_replicas(obj, scale["specReplicasPath"]) if spec else []
        errors += _validate_replicas(obj, scale["statusReplicasPath"])
        selector = scale.get("labelSelectorPath")
        if selector:
            try:
                value = nested(obj, selector)
            except LookupError as error:
                errors.append(invalid(selector, "", str(error)))
            else:
                if value is not None and not isinstance(value, str):
                    errors.append(invalid(selector, "", wrong_type(selector, value, "string")))
        return errors

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return new finalizers without a domain in their names."""
        new_finalizers = set(obj["metadata"].get("finalizers") or ())
        if old is not None:
            new_finalizers -= set(old["metadata"].get("finalizers") or ())
        texts: list[str] = []
        for name in sorted(new_finalizers):
            field_path = f"metadata.finalizers: {quoted(name)}"
            texts += [f"{field_path}: {problem}" for problem in validate_qualified_name(name)]
            if "/" not in name and name not in _STANDARD_FINALIZERS:
                path = " including a path (/)" if "." in name else ""
                texts.append(
                    f"{field_path}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with "
                    "other finalizer writers"
                )
        return texts


def _content(obj: JSONObject) -> JSONObject:
    """Return the fields of an object outside of its metadata; null differs from an absent field."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "kind", "apiVersion")}


def _validate_value_schema(
    schema: SchemaValidator, value: JSONValue, prefix: str, correlation: CorrelatedObject | None
) -> list[FieldError]:
    try:
        if schema.accepts(value):
            return []
        return [problem.cause(prefix) for problem in schema.problems(value, "", correlation)]
    except ValidationBudgetExceeded:
        return [invalid(prefix or "<nil>", "", "validating the object against its schema takes too long")]


def _validate_replicas(obj: JSONObject, path: str) -> list[FieldError]:
    try:
        value = nested(obj, path)
    except LookupError as error:
        return [invalid(path, 0, str(error))]
    if value is None:
        return []
    if not isinstance(value, int) or isinstance(value, bool):
        return [invalid(path, 0, wrong_type(path, value, "int64"))]
    if value < 0:
        return [invalid(path, value, "should be a non-negative integer")]
    if value > _INT32:
        return [invalid(path, value, f"should be less than or equal to {_INT32}")]
    return []


def nested(obj: JSONObject, path: str) -> JSONValue:
    """
    Return the value at a dotted path; L{None} if it does not exist.

    @raise LookupError: A field on the path is not an object; the message is the reference's.
    """
    value: Any = obj
    names = path.removeprefix(".").split(".")
    for index, name in enumerate(names):
        if value is None:
            return None
        if not isinstance(value, dict):
            field_path = "." + ".".join(names[: index + 1])
            raise LookupError(wrong_type(field_path, value, "map[string]interface{}"))
        if name not in value:
            return None
        value = value[name]
    return value


def wrong_type(path: str, value: JSONValue, expected_type: str) -> str:
    """Return the error message for a value of the wrong type at a dotted path."""
    return (
        f".{path.removeprefix('.')} accessor error: {value} is of the type {go_type(value)}, expected {expected_type}"
    )
