"""
Validation of the schema of a CustomResourceDefinition.

See kubernetes/apiextensions-apiserver, C{pkg/apis/apiextensions/validation/validation.go} and
C{pkg/apiserver/schema/defaulting/validation.go}. CEL rules are validated by
L{kubetwist.registry.apiextensions.validation.rules}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve, field, frozen

from ....api.errors import FieldError, forbidden, go_json, invalid, not_supported, required, valued
from ....api.gostructs import go_struct
from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject
from ....schema.mismatch import DecodeError, UnmarshalerError, UnmarshalTypeError
from ....schema.nodes import StructNode
from ....schema.structural import CustomType, Structural, decode_embedded_metadata, deep_copy
from ....schema.structuralrules import alternatives, iterate_subschemas, unsupported, validate_structural
from ....schema.validation.listrules import validate_embedded_resources
from ....schema.validation.rulepaths import (
    RULES_BUDGET,
    has_rules,
)
from ....schema.validation.validator import (
    SchemaValidator,
    ValidationBudgetExceeded,
)
from .rules import RuleContext, validate_compiled_rules, validate_rules_syntax

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_META_FIELDS: Final = frozenset(("metadata", "kind", "apiVersion"))
#: Keywords allowed at the root if the status is a subresource, in the order of the reference's message.
_ROOT_FIELDS: Final[Mapping[str, str]] = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
#: Keywords whose zero values are equivalent to absence.
_PLAIN_KEYWORDS: Final = frozenset(
    ("id", "$schema", "nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string")
)
#: Maximum number of subschemas, to bound the time of compilation.
MAX_SUBSCHEMAS: Final = 50_000


@frozen
class SchemaOptions:
    """
    Requirements on a schema. CRDs of older versions may keep violating newer rules.

    @ivar status: The status is a subresource.
    @ivar structural: The schema must be structural.
    @ivar object_meta: The type of C{metadata}; without it, metadata within defaults is not validated.
    @ivar new_rules: Whether CEL rules are validated; they are not if the schema is unchanged.
    """

    status: bool
    object_meta: StructNode | None
    structural: bool = True
    pruned_defaults: bool = True
    atomic_sets: bool = True
    list_keys: bool = True
    valid_types: bool = True
    new_rules: bool = True


def validate_crd_schema(schema: JSONObject, path: str, options: SchemaOptions) -> list[FieldError]:
    """Return the validation errors of the schema of a version, or of all versions."""
    if sum(1 for _ in iterate_subschemas(schema)) > MAX_SUBSCHEMAS:
        return [invalid(path, "", f"must have at most {MAX_SUBSCHEMAS} parts")]
    errors: list[FieldError] = []
    if options.status:
        errors += _validate_status_schema(schema, path)
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    unreadable = ""
    rules: RuleContext | None = None
    if options.structural:
        unreadable = unsupported(schema)
        if not unreadable:
            messages = validate_structural(schema, path) or validate_defaults(schema, path, options)
            errors += messages
            if not messages and options.new_rules:
                rules = RuleContext(schema)
    wrong = _validate_openapi_schema(schema, path, options, _Place(), rules)
    errors += wrong.schema + wrong.rules
    if not errors and unreadable:
        errors.append(invalid(path, "", unreadable))
    if rules is not None:
        errors += rules.total.errors(path)
    return errors


def _validate_status_schema(schema: JSONObject, path: str) -> list[FieldError]:
    kind = schema.get("type")
    if kind and kind != "object":
        text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [invalid(f"{path}.type", kind, text)]
    if any(name not in _ROOT_FIELDS and _is_set(name, value) for name, value in schema.items()):
        allowed = " ".join(_ROOT_FIELDS.values())
        text = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
        shown = go_json(go_struct(schema, "apiextensions.JSONSchemaProps"))
        go_type = "apiextensions.JSONSchemaProps"
        return [valued("FieldValueInvalid", "Invalid value", path, schema, text, go_type, shown)]
    return []


def _is_set(name: str, value: JSONValue) -> bool:
    """Return whether a keyword is set. For pointers in Go, zeros and empty values count as set."""
    return value is not None and (bool(value) or name not in _PLAIN_KEYWORDS)


# --- keywords


@frozen
class _Place:
    """The position of a subschema."""

    root: bool = True
    inside_meta: bool = False
    no_defaults: str | None = None
    #: The subschema, at or above this position, whose old and new items cannot be correlated.
    uncorrelated: str | None = None


@frozen
class _Wrong:
    """Errors of a subschema, and of its rules, which are reported only if the schema is valid."""

    schema: list[FieldError]
    rules: list[FieldError] = field(factory=list)

    def add(self, other: _Wrong) -> None:
        """Add the errors of a subschema."""
        self.schema.extend(other.schema)
        self.rules.extend(other.rules)


def _validate_openapi_schema(
    schema: JSONObject, path: str, options: SchemaOptions, place: _Place, rules: RuleContext | None
) -> _Wrong:
    """@param rules: The context of the rules of this subschema; L{None} if rules are not validated."""
    wrong = _Wrong(_validate_keywords(schema, path, options, place))
    errors = wrong.schema
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(f"{path}.uniqueItems", text))
    additional = schema.get("additionalProperties")
    properties: JSONObject = schema.get("properties") or {}
    inner = evolve(place, root=False) if place.root else place
    if additional is not None:
        if properties and additional is not True:
            text = "additionalProperties and properties are mutual exclusive"
            errors.append(forbidden(f"{path}.additionalProperties", text))
        if isinstance(additional, dict):
            reason = "inside additionalProperties applying to object metadata"
            there = evolve(inner, no_defaults=reason) if place.inside_meta else inner
            context = rules and rules.below(additional, "additionalProperties")
            wrong.add(_validate_openapi_schema(additional, f"{path}.additionalProperties", options, there, context))
    for name, part in properties.items():
        there = inner
        if schema.get("x-kubernetes-map-type") not in (None, "granular", "atomic"):
            there = evolve(there, uncorrelated=there.uncorrelated or path)
        if (place.root or schema.get("x-kubernetes-embedded-resource")) and name in _META_FIELDS:
            there = evolve(there, inside_meta=True)
            if place.root:
                there = evolve(there, no_defaults=f"in top-level {name}")
        context = rules and rules.below(part, "properties", name)
        wrong.add(_validate_openapi_schema(part, f"{path}.properties[{name}]", options, there, context))
    for part, end in alternatives(schema):
        wrong.add(_validate_openapi_schema(part, path + end, options, inner, None))
    for name, part in (schema.get("definitions") or {}).items():
        wrong.add(_validate_openapi_schema(part, f"{path}.definitions[{name}]", options, inner, None))
    items = schema.get("items")
    if items is not None and schema.get("x-kubernetes-list-type") != "map":
        inner = evolve(inner, uncorrelated=inner.uncorrelated or path)
    if isinstance(items, dict):
        context = rules and rules.below(items, "items")
        wrong.add(_validate_openapi_schema(items, f"{path}.items", options, inner, context))
    elif isinstance(items, list):
        for index, part in enumerate(items):
            wrong.add(_validate_openapi_schema(part, f"{path}.items[{index}]", options, inner, None))
    for name, part in (schema.get("dependencies") or {}).items():
        if isinstance(part, dict):
            there = evolve(place, root=False)
            wrong.add(_validate_openapi_schema(part, f"{path}.dependencies[{name}]", options, there, None))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    errors += _validate_map_type(schema, path)
    errors += _validate_list_type(schema, path, options)
    if schema.get("x-kubernetes-validations"):
        errors += validate_rules_syntax(schema, path)
        if rules is not None and not errors:
            wrong.rules.extend(validate_compiled_rules(rules, path, place.uncorrelated))
    return wrong


def _validate_keywords(schema: JSONObject, path: str, options: SchemaOptions, place: _Place) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type")
    if options.valid_types and kind and kind not in TYPES:
        errors.append(not_supported(f"{path}.type", kind, TYPES))
    if schema.get("default") is not None and place.no_defaults is not None:
        errors.append(forbidden(f"{path}.default", f"must not be set {place.no_defaults}"))
    for name in ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"):
        value = schema.get(name)
        if value or (value is not None and name in ("$ref", "dependencies", "additionalItems")):
            errors.append(forbidden(f"{path}.{name}", f"{name} is not supported"))
    if kind == "null":
        errors.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if place.inside_meta and schema.get("x-kubernetes-embedded-resource"):
        text = "must not be used inside of resource meta"
        errors.append(forbidden(f"{path}.x-kubernetes-embedded-resource", text))
    return errors


def _validate_map_type(schema: JSONObject, path: str) -> list[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is None:
        return []
    errors: list[FieldError] = []
    kind = schema.get("type") or ""
    if kind != "object":
        text = "must be object if x-kubernetes-map-type is specified"
        errors.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    if map_type not in ("atomic", "granular"):
        errors.append(unsupported_value(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    return errors


def unsupported_value(field: str, value: str, supported: tuple[str, ...]) -> FieldError:
    """Return L{not_supported}, but with the choices in the order of the reference's message."""
    field_error = not_supported(field, value, ())
    choice = ", ".join(f'"{one}"' for one in supported)
    return FieldError(field_error.reason, f"{field_error.message}: supported values: {choice}", field)


def _validate_list_type(schema: JSONObject, path: str, options: SchemaOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    list_type = schema.get("x-kubernetes-list-type")
    kind = schema.get("type") or ""
    items = schema.get("items")
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    if list_type is not None and kind != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        errors.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    elif options.atomic_sets and list_type == "set" and isinstance(items, dict):
        errors += _validate_set_items(items, path)
    field_path = f"{path}.x-kubernetes-list-type"
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        errors.append(unsupported_value(field_path, list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        errors.append(required(field_path, text) if list_type is None else invalid(field_path, list_type, text))
    if list_type == "map":
        errors += _validate_map_keys(items, keys, path)
    if options.list_keys and list_type in ("set", "map") and isinstance(items, dict):
        errors += _validate_nullable_keys(items, keys, list_type, path)
    return errors


def _validate_set_items(items: JSONObject, path: str) -> list[FieldError]:
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array":
        list_type = items.get("x-kubernetes-list-type")
        if list_type is not None and list_type != "atomic":
            return [invalid(f"{path}.items.x-kubernetes-list-type", list_type, text)]
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        return [invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), text)]
    return []


def _validate_map_keys(items: JSONValue, keys: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    field_path = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        errors.append(required(field_path, "must not be empty if x-kubernetes-list-type is map"))
    if items is None:
        errors.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
    elif not isinstance(items, dict):
        text = "must only have a single schema if x-kubernetes-list-type is map"
        shown = go_json(go_struct({"items": items}, "apiextensions.JSONSchemaProps")["Items"])
        errors.append(FieldError("FieldValueInvalid", f"Invalid value: {shown}: {text}", f"{path}.items"))
    elif items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        errors.append(invalid(f"{path}.items.type", items.get("type") or "", text))
    else:
        properties: JSONObject = items.get("properties") or {}
        # Computed once, since each error quotes all keys.
        unknown = invalid(field_path, keys, "entries must all be names of item properties")
        duplicate_error = invalid(field_path, keys, "must not contain duplicate entries")
        seen: set[str] = set()
        for key in keys:
            if key not in properties:
                errors.append(unknown)
            elif properties[key].get("type") in ("array", "object"):
                text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
                errors.append(invalid(f"{path}.items.properties[{key}].type", items.get("type"), text))
            if key in seen:
                errors.append(duplicate_error)
            seen.add(key)
    return errors


def _validate_nullable_keys(items: JSONObject, keys: list[str], list_type: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if items.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.append(forbidden(f"{path}.items.nullable", text))
    if list_type != "map":
        return errors
    properties: JSONObject = items.get("properties") or {}
    required_keys = set(items.get("required") or ())
    for key in keys:
        part = properties.get(key)
        if part is None:
            continue
        field_path = f"{path}.items.properties[{key}]"
        if key not in required_keys and part.get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            errors.append(required(f"{field_path}.default", text))
        if part.get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            errors.append(forbidden(f"{field_path}.nullable", text))
    return errors


# --- defaults


def validate_defaults(schema: JSONObject, path: str, options: SchemaOptions) -> list[FieldError]:
    """Return errors for defaults that violate the schema; C{schema} is structural."""
    if all(part.get("default") is None for part in iterate_subschemas(schema)):
        return []
    return _validate_default({**schema, "x-kubernetes-embedded-resource": True}, path, options, False, _Budget())


class _Budget:
    """The remaining cost budget of CEL rules that run on defaults; below zero, no more rules run."""

    def __init__(self) -> None:
        self.remaining = RULES_BUDGET

    def errors(self, default: JSONValue, schema: JSONObject, path: str, *, root: bool) -> list[FieldError]:
        """Return the errors of the rules that a default violates, as the old and as the new value."""
        if not has_rules(schema):
            return []
        from ....schema.validation.celrules import CELValidator

        tree = CELValidator.of(schema, root=root)
        if tree is None:
            return []
        errors, remaining = tree.validate(default, default, path, budget=self.remaining)
        if not errors:
            errors, remaining_on_create = tree.validate(default, None, path, budget=self.remaining)
            remaining = min(remaining, remaining_on_create)
        self.remaining = remaining
        return errors


def _validate_default(
    schema: JSONObject, path: str, options: SchemaOptions, inside_meta: bool, budget: _Budget
) -> list[FieldError]:
    errors: list[FieldError] = []
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if embedded:
        inside_meta = False
    default = schema.get("default")
    field_path = f"{path}.default"
    if default is not None:
        wrong = [] if inside_meta else _validate_default_fields(default, schema, field_path, options, embedded)
        errors += wrong
        # Validation continues after an unknown field.
        wrong = [field_error for field_error in wrong if field_error.message != _unknown(default, field_path).message]
        if not wrong:
            # The reference does not check the type of defaults that may be an integer or a string.
            values = SchemaValidator(_without(schema, "x-kubernetes-int-or-string"))
            try:
                wrong = [problem.cause(field_path) for problem in values.problems(deep_copy(default))]
            except ValidationBudgetExceeded:
                wrong = [invalid(field_path, "", "validating the default against its schema takes too long")]
            errors += wrong
        if not wrong:
            errors += budget.errors(default, schema, field_path, root=embedded)
    if budget.remaining < 0:
        return errors
    items = schema.get("items")
    if isinstance(items, dict):
        errors += _validate_default(items, f"{path}.items", options, inside_meta, budget)
    for name, part in (schema.get("properties") or {}).items():
        meta = inside_meta or (embedded and name in _META_FIELDS)
        errors += _validate_default(part, f"{path}.properties[{name}]", options, meta, budget)
    return errors


def _validate_default_fields(
    default: JSONValue, schema: JSONObject, path: str, options: SchemaOptions, embedded: bool
) -> list[FieldError]:
    """Return the errors of unknown fields and invalid metadata in a default."""
    # Nested defaults are not applied before validation.
    bare = _without(schema, "default")
    unknown: list[str] = []
    structural = Structural(bare)
    meta = None if options.object_meta is None else options.object_meta.compiled()
    try:
        if options.object_meta is not None and embedded and isinstance(default, dict):
            CustomType(bare, options.object_meta).decode(default, [])
        # Unknown metadata is removed without an error; see coerce_defaults.
        structural.reader(lambda value, _: deep_copy(value) if meta is None else meta(value, []))(default, unknown)
    except DecodeError as error:
        return [invalid(path, default, str(error), _interface(default))]
    except Exception:
        # Decoding errors have no paths. Values that cannot be decoded are part of the metadata.
        return [invalid(path, default, "must result in valid metadata", _interface(default))]
    errors: list[FieldError] = []
    if unknown and options.pruned_defaults:
        errors.append(_unknown(default, path))
    return errors + validate_embedded_resources(default, structural, path, root=False)


def _interface(value: JSONValue) -> str:
    """Return the Go type of a list or map without a schema."""
    if isinstance(value, dict):
        return "map[string]interface_{}"
    return "[]interface_{}" if isinstance(value, list) else ""


def coerce_defaults(schema: JSONObject, object_meta: StructNode) -> None:
    """
    Remove unknown metadata of embedded resources from defaults.

    The reference does so in C{Coerce} during validation; defaults that do not fit are reported by validation.

    @param schema: A schema; its defaults are replaced.
    """
    meta = object_meta.compiled()
    for part in iterate_subschemas(schema):
        default = part.get("default")
        if isinstance(default, (dict, list)):
            structural = Structural(_without(part, "default"))
            if structural.embedded or structural.has_embedded_resources():
                try:
                    part["default"] = decode_embedded_metadata(default, structural, meta)
                except (UnmarshalTypeError, UnmarshalerError):
                    continue


def _unknown(default: JSONValue, path: str) -> FieldError:
    return invalid(path, default, "must not have unknown fields", _interface(default))


def _without(schema: JSONObject, keyword: str) -> JSONObject:
    """Return a schema without a keyword, at any depth."""
    bare = {name: value for name, value in schema.items() if name != keyword}
    if bare.get("properties"):
        bare["properties"] = {name: _without(part, keyword) for name, part in bare["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(bare.get(name), dict):
            bare[name] = _without(bare[name], keyword)
    return bare
