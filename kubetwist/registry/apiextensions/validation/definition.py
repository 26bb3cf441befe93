"""
Validation of CustomResourceDefinitions except for their schemas.

The reference validates an internal type, in which fields that are equal in all versions are stored once, in the spec.
Its messages name the fields of that type. See kubernetes/apiextensions-apiserver,
C{pkg/apis/apiextensions/validation/validation.go} and C{pkg/apis/apiextensions/v1/conversion.go}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import orjson
from attrs import evolve

from ....api.errors import MAX_FIELD_ERRORS, FieldError, duplicate, forbidden, go_json, invalid, required, valued
from ....api.formats import is_recognized
from ....api.go.quote import is_print
from ....api.gostructs import go_struct
from ....api.jsonequality import same_json
from ....api.jsontypes import JSONValue
from ....api.names import byte_length, validate_dns1035_label, validate_dns1123_subdomain
from ....api.resource import JSONObject
from ....schema.nodes import StructNode
from ....schema.structuralrules import iterate_subschemas, unsupported, validate_structural
from ....schema.validation.rulepaths import follow_field_path
from ...generic.validation.fields import unsupported as unsupported_name
from ...generic.validation.fields import unsupported_string
from ...generic.validation.tlspairs import bundle_problem
from ...generic.validation.webhookclient import webhook_service, webhook_url
from ..apiapproval import validate_api_approval
from .schema import SchemaOptions, coerce_defaults, validate_crd_schema

COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
MAX_SELECTABLE_FIELDS: Final = 8
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
#: Extensions that are allowed in structural schemas only.
_EXTENSIONS: Final = (
    "x-kubernetes-embedded-resource",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
)


def validate_crd(crd: JSONObject, old: JSONObject | None, object_meta: StructNode | None) -> list[FieldError]:
    """
    Validate a CRD except for its metadata, which the generic store validates.

    @param old: The stored CRD; L{None} on create.
    """
    spec: JSONObject = crd.get("spec") or {}
    status: JSONObject = crd.get("status") or {}
    errors: list[FieldError] = []
    any_bundle = old is None or not _is_established(old) or bool(_old_bundle_problem(old))
    errors += _validate_spec(spec, (old or {}).get("spec"), object_meta, any_bundle=any_bundle)
    if old is not None:
        errors += _validate_immutable_fields(spec, old["spec"], _is_established(old))
    errors += validate_crd_names(status.get("acceptedNames") or {}, "status.acceptedNames")
    errors += _validate_stored_versions(status.get("storedVersions") or [], spec.get("versions") or ())
    errors += validate_api_approval(crd, old)
    preserves = bool(((old or {}).get("spec") or {}).get("preserveUnknownFields"))
    if spec.get("preserveUnknownFields") and not preserves:
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, text))
    return errors


def validate_crd_name(crd: JSONObject, name: str, prefix: bool) -> list[str]:
    """Return the errors of the name of a CRD; a name that is still to be generated has none."""
    spec: JSONObject = crd.get("spec") or {}
    problems = list(validate_dns1123_subdomain(name, prefix))
    if name != f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}":
        problems.append('must be spec.names.plural+"."+spec.group')
    return problems


def validate_crd_status(crd: JSONObject) -> list[FieldError]:
    """Return the validation errors of a status that a client writes."""
    return validate_crd_names((crd.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


def _is_established(crd: JSONObject) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)


# --- the spec


def _validate_spec(
    spec: JSONObject, old: JSONObject | None, object_meta: StructNode | None, *, any_bundle: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    group = spec.get("group") or ""
    if not group:
        errors.append(required("spec.group"))
    else:
        problems = validate_dns1123_subdomain(group)
        if problems:
            errors.append(invalid("spec.group", group, ",".join(problems)))
        elif "." not in group:
            errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope") or ""
    if not scope:
        errors.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(unsupported_string("spec.scope", scope, ("Cluster", "Namespaced")))
    errors += _validate_schema_presence(spec, old)
    preserves = bool(spec.get("preserveUnknownFields"))
    if preserves and _has_defaults(spec):
        text = "must be false in order to use defaults in the schema"
        errors.append(invalid("spec.preserveUnknownFields", True, text))
    options = SchemaOptions(False, object_meta, structural=_must_be_structural(spec, old))
    errors += _validate_versions(spec, old, options)
    names: JSONObject = spec.get("names") or {}
    errors += [
        required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)
    ]
    errors += validate_crd_names(names, "spec.names")
    errors += _validate_common(spec, old, options)
    strategy = (spec.get("conversion") or {}).get("strategy") or ""
    if preserves and spec.get("conversion") is not None and strategy != "None":
        text = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid("spec.conversion.strategy", strategy, text))
    errors += _validate_conversion(spec, old, any_bundle=any_bundle)
    return errors


def coerce_default_metadata(crd: JSONObject, object_meta: StructNode) -> None:
    """Remove unknown metadata from the defaults of a valid definition; see L{coerce_defaults}."""
    spec = crd["spec"]
    if not spec.get("preserveUnknownFields") and b'"x-kubernetes-embedded-resource":true' in orjson.dumps(spec):
        for schema in _schemas(spec):
            coerce_defaults(schema, object_meta)


def _schemas(spec: JSONObject | None) -> list[JSONObject]:
    schemas = (_schema_of(one) for one in (spec or {}).get("versions") or ())
    return [schema for schema in schemas if schema is not None]


def _has_defaults(spec: JSONObject) -> bool:
    return any(part.get("default") is not None for schema in _schemas(spec) for part in iterate_subschemas(schema))


def _must_be_structural(spec: JSONObject, old: JSONObject | None) -> bool:
    """Return whether schemas must be structural; older CRDs may keep other schemas if no feature depends on it."""
    if not spec.get("preserveUnknownFields"):
        return True
    if not any(unsupported(one) or validate_structural(one, "") for one in _schemas(old)):
        return True
    return _has_defaults(spec) or any(
        part.get(name) is not None
        for schema in _schemas(spec)
        for part in iterate_subschemas(schema)
        for name in _EXTENSIONS
    )


def _validate_schema_presence(spec: JSONObject, old: JSONObject | None) -> list[FieldError]:
    """Return an error for versions without a schema, unless the old definition has some and may keep them."""
    lenient = old is not None and any(_schema_of(one) is None for one in old.get("versions") or ())
    if lenient and spec.get("preserveUnknownFields"):
        return []
    paths = (
        f"spec.versions[{index}].schema.openAPIV3Schema"
        for index, one in enumerate(spec.get("versions") or ())
        if _schema_of(one) is None and (one.get("served") or not lenient)
    )
    if lenient:
        return [required(path, "because otherwise all fields are pruned") for path in paths]
    return [required(path).reworded(1, 34, "schemas are required") for path in paths]


def _is_common(versions: Sequence[JSONObject], field: str) -> bool:
    """Return whether all versions have equal values, so that errors are reported once."""
    return all(same_json(one.get(field), versions[0].get(field)) for one in versions)


def _schema_of(version: JSONObject) -> JSONObject | None:
    schema: JSONObject | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _validate_versions(spec: JSONObject, old: JSONObject | None, options: SchemaOptions) -> list[FieldError]:
    versions: list[JSONObject] = spec.get("versions") or []
    errors: list[FieldError] = []
    common = {field for field in _COMMON if versions and _is_common(versions, field)}
    before: dict[Any, JSONObject] = {}
    for one in (old or {}).get("versions") or ():
        before.setdefault(one.get("name"), one)
    for index, one in enumerate(versions):
        path = f"spec.versions[{index}]"
        problems = validate_dns1035_label(one.get("name") or "")
        if problems:
            errors.append(invalid(f"{path}.name", one.get("name") or "", ",".join(problems)))
        errors += _validate_deprecation(one, f"{path}.deprecationWarning")
        rest = {name: value for name, value in one.items() if name not in common}
        status = ((one.get("subresources") or {}).get("status")) is not None
        version_options = evolve(options, status=status)
        errors += _validate_version_fields(rest, path, "schema", version_options, before.get(one.get("name")))
    names = [one.get("name") for one in versions]
    if len(set(names)) != len(names):
        errors.append(_versions_cause(versions, common, "must contain unique version names"))
    if sum(1 for one in versions if one.get("storage")) != 1:
        text, has_list = "must have exactly one version marked as storage version", spec.get("versions") is not None
        errors.append(_versions_cause(versions, common, text, given=has_list))
    if names and names[0]:
        # In the internal type, the first version is also the deprecated field spec.version.
        problems = validate_dns1035_label(names[0])
        if problems:
            errors.append(invalid("spec.version", names[0], ",".join(problems)))
    return errors


_COMMON: Final = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")


def _versions_cause(versions: list[JSONObject], common: set[str], text: str, *, given: bool = True) -> FieldError:
    """
    Return an error of all versions, quoted as the internal type of the reference has them.

    @param given: Whether the object has a list of versions, possibly empty.
    """
    shown = [
        go_struct(
            {name: value for name, value in one.items() if name not in common},
            "apiextensions.CustomResourceDefinitionVersion",
        )
        for one in versions
    ]
    value = go_json(shown if given else None)
    go_type, formatted = "[]apiextensions.CustomResourceDefinitionVersion", value
    whole = [{name: part for name, part in one.items() if name not in common} for one in versions] if given else None
    return valued("FieldValueInvalid", "Invalid value", "spec.versions", whole, text, go_type, formatted)


def _validate_common(spec: JSONObject, old: JSONObject | None, options: SchemaOptions) -> list[FieldError]:
    """Validate the fields that all versions have in common; errors have the paths of the fields of C{spec}."""
    versions: list[JSONObject] = spec.get("versions") or []
    if not versions:
        return []
    first = {name: value for name, value in versions[0].items() if name in _COMMON and _is_common(versions, name)}
    status = any((one.get("subresources") or {}).get("status") is not None for one in versions)
    options = evolve(options, status=status)
    before = old["versions"][0] if old is not None and old.get("versions") else None
    return _validate_version_fields(first, "spec", "validation", options, before)


def _validate_version_fields(
    part: JSONObject,
    path: str,
    schema_field: str,
    options: SchemaOptions,
    old: JSONObject | None,
) -> list[FieldError]:
    """
    Validate the schema, subresources, columns and selectable fields in C{part}.

    Selectable fields need the schema at the same level: if all versions have the same schema and different selectable
    fields, or the opposite, the reference refuses them (apiextensions-apiserver, C{pkg/apis/apiextensions/v1}: values
    that are identical in all versions are moved into the spec).

    @param part: The spec, or one of its versions.
    @param path: Its path.
    @param schema_field: Name of the field with the schema.
    @param options: Options for the validation of the schema.
    @param old: The same part of the stored definition; L{None} if there is none.
    """
    errors: list[FieldError] = []
    own = _schema_of(part)
    if own is not None:
        if old is not None and same_json(_schema_of(old), own):
            options = evolve(options, new_rules=False)
        errors += validate_crd_schema(own, f"{path}.{schema_field}.openAPIV3Schema", options)
    errors += _validate_scale((part.get("subresources") or {}).get("scale"), f"{path}.subresources")
    for index, column in enumerate(part.get("additionalPrinterColumns") or ()):
        errors += _validate_printer_column(column, f"{path}.additionalPrinterColumns[{index}]")
    fields = part.get("selectableFields") or ()
    if fields:
        unchanged = old is not None and old.get("selectableFields") == fields
        errors += _validate_selectable_fields(fields, own, f"{path}.selectableFields", allow_many=unchanged)
    return errors


# --- parts


def validate_crd_names(names: JSONObject, path: str) -> list[FieldError]:
    """Return the validation errors of the names of a resource and kind."""
    errors: list[FieldError] = []
    for field in ("plural", "singular"):
        name = names.get(field) or ""
        problems = validate_dns1035_label(name) if name else ()
        if problems:
            errors.append(invalid(f"{path}.{field}", name, ",".join(problems)))
    for field in ("kind", "listKind"):
        name = names.get(field) or ""
        problems = validate_dns1035_label(name.lower()) if name else ()
        if problems:
            text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.append(invalid(f"{path}.{field}", name, text))
    errors += _validate_name_labels(names.get("shortNames") or (), f"{path}.shortNames")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    errors += _validate_name_labels(names.get("categories") or (), f"{path}.categories")
    return errors


def _validate_name_labels(labels: Sequence[str], path: str) -> list[FieldError]:
    errors = []
    for index, label in enumerate(labels):
        problems = validate_dns1035_label(label)
        if problems:
            errors.append(invalid(f"{path}[{index}]", label, ",".join(problems)))
    return errors


def _validate_deprecation(version: JSONObject, path: str) -> list[FieldError]:
    text = version.get("deprecationWarning")
    if text is None:
        return []
    if not version.get("deprecated"):
        return [invalid(path, text, "can only be set for deprecated versions")]
    problems = []
    if byte_length(text) > 256:
        problems.append("must be <= 256 characters long")
    if not text:
        problems.append("must not be an empty string")
    at = 0
    for character in text:
        if not is_print(character):
            problem = f"non-printable character found at index {at}"
            problems.append(f"must only contain printable UTF-8 characters; {problem}")
            break
        at += byte_length(character)
    return [invalid(path, text, problem) for problem in problems]


def _validate_path(path: str, field: str) -> list[FieldError]:
    return [] if path.startswith(".") else [invalid(field, path, "must be a simple json path starting with .")]


def _validate_scale(scale: JSONObject | None, path: str) -> list[FieldError]:
    if scale is None:
        return []
    errors: list[FieldError] = []
    for name, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        json_path = scale.get(name) or ""
        field_path = f"{path}.scale.{name}"
        if not json_path:
            errors.append(required(field_path))
            continue
        path_errors = _validate_path(json_path, field_path)
        if not path_errors and not json_path.startswith(start):
            path_errors = [invalid(field_path, json_path, f"should be a json path under {start.rstrip('.')}")]
        errors += path_errors
    selector = scale.get("labelSelectorPath") or ""
    if selector:
        field_path = f"{path}.scale.labelSelectorPath"
        path_errors = _validate_path(selector, field_path)
        if not path_errors and not selector.startswith((".spec.", ".status.")):
            path_errors = [invalid(field_path, selector, "should be a json path under either .spec or .status")]
        errors += path_errors
    return errors


def _validate_printer_column(column: JSONObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not column.get("name"):
        errors.append(required(f"{path}.name"))
    kind = column.get("type") or ""
    text = f"must be one of {','.join(COLUMN_TYPES)}"
    if not kind:
        errors.append(required(f"{path}.type", text))
    elif kind not in COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", kind, text))
    form = column.get("format") or ""
    if form and form not in COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    json_path = column.get("jsonPath") or ""
    errors += _validate_path(json_path, f"{path}.JSONPath") if json_path else [required(f"{path}.JSONPath")]
    return errors


def _validate_selectable_fields(
    fields: Sequence[JSONObject], schema: JSONObject | None, path: str, *, allow_many: bool
) -> list[FieldError]:
    if schema is None:
        # Both texts are the reference's, although neither is clear.
        whole = path == "spec.selectableFields"
        condition = "validations.schema is included" if whole else "`version.schema.openAPIV3Schema` is not included"
        return [invalid(path, "", f"may only be set when {condition}")]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, field in enumerate(fields):
        json_path = field.get("jsonPath") or ""
        field_path = f"{path}[{index}].jsonPath"
        if not json_path:
            errors.append(required(field_path))
            continue
        try:
            shown, node = follow_field_path(json_path, schema, brackets=False)
        except ValueError as error:
            errors.append(invalid(field_path, json_path, f"is an invalid path: {error}"))
            continue
        if re.split(r"[.\[]", shown, maxsplit=1)[0] == "metadata":
            errors.append(invalid(field_path, json_path, "must not point to fields in metadata"))
        if node.get("type") not in ("string", "boolean", "integer"):
            text = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(invalid(field_path, json_path, text))
        if shown in seen:
            errors.append(duplicate(field_path, json_path))
        seen.add(shown)
    if len(seen) > MAX_SELECTABLE_FIELDS and not allow_many:
        text = f"Too many: {len(seen)}: must have at most {MAX_SELECTABLE_FIELDS} items"
        errors.append(FieldError("FieldValueTooMany", text, path))
    return errors


def _validate_conversion(spec: JSONObject, old: JSONObject | None, *, any_bundle: bool) -> list[FieldError]:
    conversion: JSONObject | None = spec.get("conversion")
    if conversion is None:
        return []
    errors: list[FieldError] = []
    strategy = conversion.get("strategy") or ""
    path = "spec.conversion"
    if not strategy:
        errors.append(required(f"{path}.strategy"))
    elif strategy not in ("None", "Webhook"):
        errors.append(unsupported_name(f"{path}.strategy", strategy, ("None", "Webhook")))
    webhook: JSONObject | None = conversion.get("webhook")
    client: JSONObject | None = (webhook or {}).get("clientConfig")
    reviews: list[str] = (webhook or {}).get("conversionReviewVersions") or []
    if strategy != "Webhook":
        if client is not None:
            text = "should not be set when strategy is not set to Webhook"
            errors.append(forbidden(f"{path}.webhookClientConfig", text))
        if reviews:
            text = "should not be set when strategy is not set to Webhook"
            errors.append(forbidden(f"{path}.conversionReviewVersions", text))
        return errors
    if client is None:
        errors.append(required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        errors += _validate_webhook_client_config(client, f"{path}.webhookClientConfig")
        problem = "" if any_bundle else bundle_problem(client.get("caBundle"))
        if problem:
            errors.append(invalid(f"{path}.webhookClientConfig.caBundle", client["caBundle"], problem))
    errors += _validate_conversion_review_versions(reviews, f"{path}.conversionReviewVersions", old)
    return errors


def _old_bundle_problem(old: JSONObject) -> str:
    """Return the error of the CA bundle of the stored CRD, which is ignored in updates."""
    webhook: JSONObject = (old["spec"].get("conversion") or {}).get("webhook") or {}
    return bundle_problem((webhook.get("clientConfig") or {}).get("caBundle"))


def _validate_webhook_client_config(client: JSONObject, path: str) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    errors: list[FieldError] = []
    if service is not None:
        webhook_service(service, f"{path}.service", errors)
    else:
        webhook_url(str(url), f"{path}.url", True, errors)
    return errors


def _validate_conversion_review_versions(versions: list[str], path: str, old: JSONObject | None) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        errors += [invalid(f"{path}[{index}]", version, text) for text in validate_dns1035_label(version)]
    before: Any = ((((old or {}).get("conversion") or {}).get("webhook")) or {}).get("conversionReviewVersions")
    strict = old is None or not before or any(one in _REVIEW_VERSIONS for one in before)
    if strict and not any(version in _REVIEW_VERSIONS for version in versions):
        text = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        errors.append(invalid(path, versions, text))
    return errors


# --- over time


def _validate_immutable_fields(spec: JSONObject, old: JSONObject, established: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    names, before = spec.get("names") or {}, old.get("names") or {}

    def same(field: str, now: JSONValue, was: JSONValue) -> None:
        if now != was:
            errors.append(invalid(field, now or "", "field is immutable"))

    if established:
        same("spec.scope", spec.get("scope"), old.get("scope"))
        same("spec.names.kind", names.get("kind"), before.get("kind"))
    same("spec.group", spec.get("group"), old.get("group"))
    same("spec.names.plural", names.get("plural"), before.get("plural"))
    return errors


def _validate_stored_versions(stored: list[str], versions: Sequence[JSONObject]) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, None, "must have at least one stored version", "[]string")]
    places = {name: index for index, name in enumerate(stored)}
    errors: list[FieldError] = []
    for one in versions:
        name = one.get("name") or ""
        # Duplicates are reported once. Each error quotes the whole list, hence the limit.
        if places.pop(name, None) is None and one.get("storage") and len(errors) < MAX_FIELD_ERRORS:
            errors.append(invalid(path, stored, f"must have the storage version {name}"))
    for name, index in places.items():
        text = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
            f"{name} from status.storedVersions"
        )
        errors.append(invalid(f"{path}[{index}]", name, text))
    return errors


def schema_warnings(crd: JSONObject) -> list[str]:
    """Return warnings about the schemas of a CRD for its author."""
    formats: list[str] = []
    versions: list[JSONObject] = (crd.get("spec") or {}).get("versions") or []
    if versions and _is_common(versions, "schema"):
        versions = versions[:1]
    for version in versions:
        schema = _schema_of(version)
        for part in iterate_subschemas(schema) if schema is not None else ():
            name = part.get("format")
            if name and not is_recognized(part.get("type") or "", name):
                formats.append(f'unrecognized format "{name}"')
    return formats
