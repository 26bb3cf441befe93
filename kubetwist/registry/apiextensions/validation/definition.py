"""
What is wrong with a CustomResourceDefinition besides its schemas.

The reference checks definitions in an older form, where what all versions have in common is said once for all of them;
its messages name fields of that form. See kubernetes/apiextensions-apiserver,
C{pkg/apis/apiextensions/validation/validation.go}, and C{pkg/apis/apiextensions/v1/conversion.go}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import orjson
from attrs import evolve

from ....api.errors import MOST_CAUSES, Cause, duplicate, forbidden, go_json, invalid, required
from ....api.formats import is_recognized
from ....api.go.quote import is_print
from ....api.gostructs import go_struct
from ....api.jsonequality import same_json
from ....api.jsontypes import JSONValue
from ....api.names import byte_length, is_dns1035_label_problems, is_dns1123_subdomain_problems
from ....api.resource import JSONObject
from ....schema.nodes import StructNode
from ....schema.structuralrules import everywhere, structural_causes, unsupported
from ....schema.validation.rulepaths import follow_field_path
from ...generic.validation.fields import unsupported as unsupported_name
from ...generic.validation.fields import unsupported_string
from ...generic.validation.tlspairs import bundle_problem
from ...generic.validation.webhookclient import webhook_service, webhook_url
from ..apiapproval import approval_causes
from .schema import SchemaOptions, coerce_defaults, schema_causes

COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
MOST_SELECTABLE: Final = 8
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
#: What only structural schemas say.
_EXTENSIONS: Final = (
    "x-kubernetes-embedded-resource",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
)


def definition_causes(crd: JSONObject, old: JSONObject | None, object_meta: StructNode | None) -> list[Cause]:
    """
    Everything but the metadata, which is looked at elsewhere.

    @param old: What it replaces; L{None} for a new one.
    """
    spec: JSONObject = crd.get("spec") or {}
    status: JSONObject = crd.get("status") or {}
    causes: list[Cause] = []
    any_bundle = old is None or not _is_established(old) or bool(_old_bundle_problem(old))
    causes += _spec_causes(spec, (old or {}).get("spec"), object_meta, any_bundle=any_bundle)
    if old is not None:
        causes += _immutable_causes(spec, old["spec"], _is_established(old))
    causes += names_causes(status.get("acceptedNames") or {}, "status.acceptedNames")
    causes += _stored_causes(status.get("storedVersions") or [], spec.get("versions") or ())
    causes += approval_causes(crd, old)
    preserves = bool(((old or {}).get("spec") or {}).get("preserveUnknownFields"))
    if spec.get("preserveUnknownFields") and not preserves:
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        causes.append(invalid("spec.preserveUnknownFields", True, text))
    return causes


def definition_name_problems(crd: JSONObject, name: str, prefix: bool) -> list[str]:
    """What is wrong with a name of this definition; one that is generated is none."""
    spec: JSONObject = crd.get("spec") or {}
    problems = list(is_dns1123_subdomain_problems(name, prefix))
    if name != f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}":
        problems.append('must be spec.names.plural+"."+spec.group')
    return problems


def status_causes(crd: JSONObject) -> list[Cause]:
    """What is wrong with a status that a client writes."""
    return names_causes((crd.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


def _is_established(crd: JSONObject) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)


# --- the spec


def _spec_causes(
    spec: JSONObject, old: JSONObject | None, object_meta: StructNode | None, *, any_bundle: bool
) -> list[Cause]:
    causes: list[Cause] = []
    group = spec.get("group") or ""
    if not group:
        causes.append(required("spec.group"))
    else:
        problems = is_dns1123_subdomain_problems(group)
        if problems:
            causes.append(invalid("spec.group", group, ",".join(problems)))
        elif "." not in group:
            causes.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope") or ""
    if not scope:
        causes.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        causes.append(unsupported_string("spec.scope", scope, ("Cluster", "Namespaced")))
    causes += _missing_schema_causes(spec, old)
    preserves = bool(spec.get("preserveUnknownFields"))
    if preserves and _has_defaults(spec):
        text = "must be false in order to use defaults in the schema"
        causes.append(invalid("spec.preserveUnknownFields", True, text))
    options = SchemaOptions(False, object_meta, structural=_must_be_structural(spec, old))
    causes += _versions_causes(spec, old, options)
    names: JSONObject = spec.get("names") or {}
    causes += [
        required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)
    ]
    causes += names_causes(names, "spec.names")
    causes += _common_causes(spec, old, options)
    strategy = (spec.get("conversion") or {}).get("strategy") or ""
    if preserves and spec.get("conversion") is not None and strategy != "None":
        text = "must be None if spec.preserveUnknownFields is true"
        causes.append(invalid("spec.conversion.strategy", strategy, text))
    causes += _conversion_causes(spec, old, any_bundle=any_bundle)
    return causes


def coerce_default_metadata(crd: JSONObject, object_meta: StructNode) -> None:
    """Remove unknown metadata from the defaults of a valid definition; see L{coerce_defaults}."""
    spec = crd["spec"]
    if not spec.get("preserveUnknownFields") and b'"x-kubernetes-embedded-resource":true' in orjson.dumps(spec):
        for schema in _schemas(spec):
            coerce_defaults(schema, object_meta)


def _schemas(spec: JSONObject | None) -> list[JSONObject]:
    found = (_schema_of(one) for one in (spec or {}).get("versions") or ())
    return [schema for schema in found if schema is not None]


def _has_defaults(spec: JSONObject) -> bool:
    return any(part.get("default") is not None for schema in _schemas(spec) for part in everywhere(schema))


def _must_be_structural(spec: JSONObject, old: JSONObject | None) -> bool:
    """Whether schemas have to be structural; those of older definitions need not, where nothing depends on it."""
    if not spec.get("preserveUnknownFields"):
        return True
    if not any(unsupported(one) or structural_causes(one, "") for one in _schemas(old)):
        return True
    return _has_defaults(spec) or any(
        part.get(name) is not None for schema in _schemas(spec) for part in everywhere(schema) for name in _EXTENSIONS
    )


def _missing_schema_causes(spec: JSONObject, old: JSONObject | None) -> list[Cause]:
    """Versions without a schema; older definitions may have some if nothing is pruned, or if they are not served."""
    lenient = old is not None and any(_schema_of(one) is None for one in old.get("versions") or ())
    if lenient and spec.get("preserveUnknownFields"):
        return []
    return [
        required(
            f"spec.versions[{index}].schema.openAPIV3Schema",
            "because otherwise all fields are pruned" if lenient else "",
        )
        for index, one in enumerate(spec.get("versions") or ())
        if _schema_of(one) is None and (one.get("served") or not lenient)
    ]


def _is_common(versions: Sequence[JSONObject], field: str) -> bool:
    """Whether something is the same in all versions, so that it is told of once."""
    return all(same_json(one.get(field), versions[0].get(field)) for one in versions)


def _schema_of(version: JSONObject) -> JSONObject | None:
    schema: JSONObject | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _versions_causes(spec: JSONObject, old: JSONObject | None, options: SchemaOptions) -> list[Cause]:
    versions: list[JSONObject] = spec.get("versions") or []
    causes: list[Cause] = []
    common = {field for field in _COMMON if versions and _is_common(versions, field)}
    before: dict[Any, JSONObject] = {}
    for one in (old or {}).get("versions") or ():
        before.setdefault(one.get("name"), one)
    for index, one in enumerate(versions):
        where = f"spec.versions[{index}]"
        problems = is_dns1035_label_problems(one.get("name") or "")
        if problems:
            causes.append(invalid(f"{where}.name", one.get("name") or "", ",".join(problems)))
        causes += _deprecation_causes(one, f"{where}.deprecationWarning")
        rest = {name: value for name, value in one.items() if name not in common}
        status = ((one.get("subresources") or {}).get("status")) is not None
        here = evolve(options, status=status)
        causes += _part_causes(rest, where, "schema", here, before.get(one.get("name")))
    names = [one.get("name") for one in versions]
    if len(set(names)) != len(names):
        causes.append(_versions_cause(versions, common, "must contain unique version names"))
    if sum(1 for one in versions if one.get("storage")) != 1:
        text, given = "must have exactly one version marked as storage version", spec.get("versions") is not None
        causes.append(_versions_cause(versions, common, text, given=given))
    if names and names[0]:
        # In memory, the first one is the version of definitions of old, too.
        problems = is_dns1035_label_problems(names[0])
        if problems:
            causes.append(invalid("spec.version", names[0], ",".join(problems)))
    return causes


_COMMON: Final = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")


def _versions_cause(versions: list[JSONObject], common: set[str], text: str, *, given: bool = True) -> Cause:
    """
    A problem of all versions, which are quoted as the reference has them in memory.

    @param given: Whether there is a list of versions, if only an empty one.
    """
    shown = [
        go_struct(
            {name: value for name, value in one.items() if name not in common},
            "apiextensions.CustomResourceDefinitionVersion",
        )
        for one in versions
    ]
    value = go_json(shown if given else None)
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {text}", "spec.versions")


def _common_causes(spec: JSONObject, old: JSONObject | None, options: SchemaOptions) -> list[Cause]:
    """What all versions have in common: told of as if it were the definition's own."""
    versions: list[JSONObject] = spec.get("versions") or []
    if not versions:
        return []
    first = {name: value for name, value in versions[0].items() if name in _COMMON and _is_common(versions, name)}
    status = any((one.get("subresources") or {}).get("status") is not None for one in versions)
    options = evolve(options, status=status)
    before = old["versions"][0] if old is not None and old.get("versions") else None
    return _part_causes(first, "spec", "validation", options, before)


def _part_causes(
    part: JSONObject,
    path: str,
    schema_field: str,
    options: SchemaOptions,
    old: JSONObject | None,
) -> list[Cause]:
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
    causes: list[Cause] = []
    own = _schema_of(part)
    if own is not None:
        if old is not None and same_json(_schema_of(old), own):
            options = evolve(options, new_rules=False)
        causes += schema_causes(own, f"{path}.{schema_field}.openAPIV3Schema", options)
    causes += _scale_causes((part.get("subresources") or {}).get("scale"), f"{path}.subresources")
    for index, column in enumerate(part.get("additionalPrinterColumns") or ()):
        causes += _column_causes(column, f"{path}.additionalPrinterColumns[{index}]")
    fields = part.get("selectableFields") or ()
    if fields:
        unchanged = old is not None and old.get("selectableFields") == fields
        causes += _selectable_causes(fields, own, f"{path}.selectableFields", allow_many=unchanged)
    return causes


# --- parts


def names_causes(names: JSONObject, path: str) -> list[Cause]:
    """What is wrong with the names of a resource and kind."""
    causes: list[Cause] = []
    for field in ("plural", "singular"):
        name = names.get(field) or ""
        problems = is_dns1035_label_problems(name) if name else ()
        if problems:
            causes.append(invalid(f"{path}.{field}", name, ",".join(problems)))
    for field in ("kind", "listKind"):
        name = names.get(field) or ""
        problems = is_dns1035_label_problems(name.lower()) if name else ()
        if problems:
            text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            causes.append(invalid(f"{path}.{field}", name, text))
    causes += _labels_causes(names.get("shortNames") or (), f"{path}.shortNames")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        causes.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    causes += _labels_causes(names.get("categories") or (), f"{path}.categories")
    return causes


def _labels_causes(labels: Sequence[str], path: str) -> list[Cause]:
    causes = []
    for index, label in enumerate(labels):
        problems = is_dns1035_label_problems(label)
        if problems:
            causes.append(invalid(f"{path}[{index}]", label, ",".join(problems)))
    return causes


def _deprecation_causes(version: JSONObject, path: str) -> list[Cause]:
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
            found = f"non-printable character found at index {at}"
            problems.append(f"must only contain printable UTF-8 characters; {found}")
            break
        at += byte_length(character)
    return [invalid(path, text, problem) for problem in problems]


def _path_causes(path: str, field: str) -> list[Cause]:
    return [] if path.startswith(".") else [invalid(field, path, "must be a simple json path starting with .")]


def _scale_causes(scale: JSONObject | None, path: str) -> list[Cause]:
    if scale is None:
        return []
    causes: list[Cause] = []
    for name, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        said = scale.get(name) or ""
        where = f"{path}.scale.{name}"
        if not said:
            causes.append(required(where))
            continue
        found = _path_causes(said, where)
        if not found and not said.startswith(start):
            found = [invalid(where, said, f"should be a json path under {start.rstrip('.')}")]
        causes += found
    selector = scale.get("labelSelectorPath") or ""
    if selector:
        where = f"{path}.scale.labelSelectorPath"
        found = _path_causes(selector, where)
        if not found and not selector.startswith((".spec.", ".status.")):
            found = [invalid(where, selector, "should be a json path under either .spec or .status")]
        causes += found
    return causes


def _column_causes(column: JSONObject, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if not column.get("name"):
        causes.append(required(f"{path}.name"))
    kind = column.get("type") or ""
    text = f"must be one of {','.join(COLUMN_TYPES)}"
    if not kind:
        causes.append(required(f"{path}.type", text))
    elif kind not in COLUMN_TYPES:
        causes.append(invalid(f"{path}.type", kind, text))
    form = column.get("format") or ""
    if form and form not in COLUMN_FORMATS:
        causes.append(invalid(f"{path}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    said = column.get("jsonPath") or ""
    causes += _path_causes(said, f"{path}.JSONPath") if said else [required(f"{path}.JSONPath")]
    return causes


def _selectable_causes(
    fields: Sequence[JSONObject], schema: JSONObject | None, path: str, *, allow_many: bool
) -> list[Cause]:
    if schema is None:
        # Neither says it well, but that is how the reference has them.
        whole = path == "spec.selectableFields"
        what = "validations.schema is included" if whole else "`version.schema.openAPIV3Schema` is not included"
        return [invalid(path, "", f"may only be set when {what}")]
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, field in enumerate(fields):
        said = field.get("jsonPath") or ""
        where = f"{path}[{index}].jsonPath"
        if not said:
            causes.append(required(where))
            continue
        try:
            shown, found = follow_field_path(said, schema, brackets=False)
        except ValueError as error:
            causes.append(invalid(where, said, f"is an invalid path: {error}"))
            continue
        if re.split(r"[.\[]", shown, maxsplit=1)[0] == "metadata":
            causes.append(invalid(where, said, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            text = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            causes.append(invalid(where, said, text))
        if shown in seen:
            causes.append(duplicate(where, said))
        seen.add(shown)
    if len(seen) > MOST_SELECTABLE and not allow_many:
        text = f"Too many: {len(seen)}: must have at most {MOST_SELECTABLE} items"
        causes.append(Cause("FieldValueTooMany", text, path))
    return causes


def _conversion_causes(spec: JSONObject, old: JSONObject | None, *, any_bundle: bool) -> list[Cause]:
    conversion: JSONObject | None = spec.get("conversion")
    if conversion is None:
        return []
    causes: list[Cause] = []
    strategy = conversion.get("strategy") or ""
    where = "spec.conversion"
    if not strategy:
        causes.append(required(f"{where}.strategy"))
    elif strategy not in ("None", "Webhook"):
        causes.append(unsupported_name(f"{where}.strategy", strategy, ("None", "Webhook")))
    webhook: JSONObject | None = conversion.get("webhook")
    client: JSONObject | None = (webhook or {}).get("clientConfig")
    reviews: list[str] = (webhook or {}).get("conversionReviewVersions") or []
    if strategy != "Webhook":
        if client is not None:
            text = "should not be set when strategy is not set to Webhook"
            causes.append(forbidden(f"{where}.webhookClientConfig", text))
        if reviews:
            text = "should not be set when strategy is not set to Webhook"
            causes.append(forbidden(f"{where}.conversionReviewVersions", text))
        return causes
    if client is None:
        causes.append(required(f"{where}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        causes += _client_causes(client, f"{where}.webhookClientConfig")
        problem = "" if any_bundle else bundle_problem(client.get("caBundle"))
        if problem:
            causes.append(invalid(f"{where}.webhookClientConfig.caBundle", client["caBundle"], problem))
    causes += _review_causes(reviews, f"{where}.conversionReviewVersions", old)
    return causes


def _old_bundle_problem(old: JSONObject) -> str:
    """What is wrong with the authorities of an older definition; they may stay as they are."""
    webhook: JSONObject = (old["spec"].get("conversion") or {}).get("webhook") or {}
    return bundle_problem((webhook.get("clientConfig") or {}).get("caBundle"))


def _client_causes(client: JSONObject, path: str) -> list[Cause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    causes: list[Cause] = []
    if service is not None:
        webhook_service(service, f"{path}.service", causes)
    else:
        webhook_url(str(url), f"{path}.url", True, causes)
    return causes


def _review_causes(versions: list[str], path: str, old: JSONObject | None) -> list[Cause]:
    if not versions:
        return [required(path)]
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            causes.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        causes += [invalid(f"{path}[{index}]", version, text) for text in is_dns1035_label_problems(version)]
    before: Any = ((((old or {}).get("conversion") or {}).get("webhook")) or {}).get("conversionReviewVersions")
    strict = old is None or not before or any(one in _REVIEW_VERSIONS for one in before)
    if strict and not any(version in _REVIEW_VERSIONS for version in versions):
        text = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        causes.append(invalid(path, versions, text))
    return causes


# --- over time


def _immutable_causes(spec: JSONObject, old: JSONObject, established: bool) -> list[Cause]:
    causes: list[Cause] = []
    names, before = spec.get("names") or {}, old.get("names") or {}

    def same(field: str, now: JSONValue, was: JSONValue) -> None:
        if now != was:
            causes.append(invalid(field, now or "", "field is immutable"))

    if established:
        same("spec.scope", spec.get("scope"), old.get("scope"))
        same("spec.names.kind", names.get("kind"), before.get("kind"))
    same("spec.group", spec.get("group"), old.get("group"))
    same("spec.names.plural", names.get("plural"), before.get("plural"))
    return causes


def _stored_causes(stored: list[str], versions: Sequence[JSONObject]) -> list[Cause]:
    path = "status.storedVersions"
    if not stored:
        return [Cause("FieldValueInvalid", "Invalid value: null: must have at least one stored version", path)]
    places = {name: index for index, name in enumerate(stored)}
    causes: list[Cause] = []
    for one in versions:
        name = one.get("name") or ""
        # One that is there twice is stored once. Of very many nobody is told, and each quotes all that are stored.
        if places.pop(name, None) is None and one.get("storage") and len(causes) < MOST_CAUSES:
            causes.append(invalid(path, stored, f"must have the storage version {name}"))
    for name, index in places.items():
        text = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
            f"{name} from status.storedVersions"
        )
        causes.append(invalid(f"{path}[{index}]", name, text))
    return causes


def schema_warnings(crd: JSONObject) -> list[str]:
    """What those who write a definition should know about its schemas."""
    formats: list[str] = []
    versions: list[JSONObject] = (crd.get("spec") or {}).get("versions") or []
    if versions and _is_common(versions, "schema"):
        versions = versions[:1]
    for version in versions:
        schema = _schema_of(version)
        for part in everywhere(schema) if schema is not None else ():
            name = part.get("format")
            if name and not is_recognized(part.get("type") or "", name):
                formats.append(f'unrecognized format "{name}"')
    return formats
