"""
Parsing and validation of request options in the query or in the body of a DELETE, as in the reference.

A query maps names to lists of values; the first value counts. Invalid numbers are a 400 with Go's message, invalid
combinations of values a 422 for a kind of C{meta.k8s.io}. See kubernetes/apimachinery, C{pkg/apis/meta/v1/validation}
and C{pkg/apis/meta/internalversion}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .continuetokens import ContinueTokenError, decode_continue, encode_continue
from .documents import json_type
from .errors import APIStatusError, FieldError, forbidden, go_json, invalid, not_supported, required, too_long, valued
from .go.quote import (
    is_print,
    quoted,
    unicode_number,
)
from .jsontypes import JSONValue
from .names import byte_length
from .options import CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, UpdateOptions, WriteOptions
from .resource import GroupKind
from .selectors import SelectorError, parse_field_selector, parse_label_selector

__all__ = [
    "ContinueTokenError",
    "decode_continue",
    "encode_continue",
    "parse_create_options",
    "parse_delete_options_from_body",
    "parse_delete_options_from_query",
    "parse_get_options",
    "parse_int64",
    "parse_list_options",
    "parse_patch_options",
    "parse_update_options",
    "validate_field_manager",
]

Query = Mapping[str, Sequence[str]]

#: Media types of server-side apply, which requires a field manager and allows C{force}.
APPLY: Final = ("application/apply-patch+yaml", "application/apply-patch+cbor")

_MANAGER_LENGTH: Final = 128
_FIELD_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_POLICIES: Final = ("Foreground", "Background", "Orphan")


def parse_int64(text: str) -> int:
    """
    Parse an integer (Go: C{strconv.ParseInt(text, 10, 64)}).

    @raise ValueError: The text is invalid; the message is Go's.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isascii() and digits.isdigit():
        # Python rejects numbers of thousands of digits.
        number = int(text) if len(digits) < 100 else 1 << 64
        if -(1 << 63) <= number < 1 << 63:
            return number
        problem = "value out of range"
    else:
        problem = "invalid syntax"
    raise ValueError(f"strconv.ParseInt: parsing {quoted(text)}: {problem}")


def _first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _int64(query: Query, name: str) -> int | None:
    values = query.get(name)
    if not values:
        return None
    try:
        return parse_int64(values[0])
    except ValueError as error:
        raise APIStatusError.bad_request(str(error)) from None


def _bool(query: Query, name: str) -> bool | None:
    # Any value except for "0" and "false" is true, even the empty one.
    values = query.get(name)
    return None if not values else values[0] != "0" and values[0].lower() != "false"


def _refuse(kind: str, errors: Sequence[FieldError]) -> None:
    if errors:
        raise APIStatusError.invalid(GroupKind("meta.k8s.io", kind), "", errors)


def parse_get_options(query: Query) -> GetOptions:
    """Parse the options of a GET."""
    return GetOptions(_first(query, "resourceVersion"))


_LISTED_BY: Final = frozenset(
    (
        "labelSelector",
        "fieldSelector",
        "watch",
        "allowWatchBookmarks",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "limit",
        "continue",
        "sendInitialEvents",
    )
)


def parse_list_options(query: Query, watch: bool = False, watch_list: bool = True) -> ListOptions:
    """
    Parse the options of a list or a watch.

    The field selector is only parsed: the kind defines the supported fields. A watch without a version, or from
    version 0, sends the existing objects first, as the reference's defaulting does.

    @param watch: Whether the path requests a watch; the options are validated by the query alone.
    @param watch_list: Whether watches may request initial events: the feature gate WatchList.
    @raise APIStatusError: The options are invalid (400 or 422).
    """
    options = ListOptions(watch=watch)
    if _LISTED_BY.isdisjoint(query):
        return options
    watches = bool(_bool(query, "watch"))
    options.watch = watch or watches
    options.allow_watch_bookmarks = bool(_bool(query, "allowWatchBookmarks"))
    options.resource_version = _first(query, "resourceVersion")
    options.resource_version_match = _first(query, "resourceVersionMatch")
    timeout = _int64(query, "timeoutSeconds")
    options.timeout = None if timeout is None else float(timeout)
    options.limit = _int64(query, "limit") or 0
    options.continue_token = _first(query, "continue")
    options.send_initial_events = _bool(query, "sendInitialEvents")
    options.label_selector = _first(query, "labelSelector")
    options.field_selector = _first(query, "fieldSelector")
    try:
        if options.label_selector:
            labels = parse_label_selector(options.label_selector)
            options.labels = None if labels.empty else labels.matches
            options.requirements = labels.requirements
        if options.field_selector:
            options.fields = parse_field_selector(options.field_selector)
    except SelectorError as error:
        raise APIStatusError.bad_request(str(error)) from None
    if watches:
        _refuse("ListOptions", _validate_watch_options(options, watch_list))
    elif options.resource_version_match or options.send_initial_events is not None:
        _refuse("ListOptions", _validate_list_options(options))
    return options


def _validate_list_options(options: ListOptions) -> list[FieldError]:
    errors = []
    match, path = options.resource_version_match, "resourceVersionMatch"
    if match:
        if not options.resource_version:
            errors.append(forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(_unsupported(path, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and options.resource_version == "0":
            errors.append(forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _validate_watch_options(options: ListOptions, watch_list: bool) -> list[FieldError]:
    path = "resourceVersionMatch"
    if options.send_initial_events is None and not options.resource_version_match:
        if not watch_list or options.resource_version not in ("", "0"):
            return []
        options.send_initial_events, options.resource_version_match = True, "NotOlderThan"
    errors = []
    match = options.resource_version_match
    if options.send_initial_events is not None and match != "NotOlderThan":
        errors.append(forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if options.send_initial_events is not None and not watch_list:
        errors.append(
            forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            )
        )
    if match:
        if options.send_initial_events is None:
            errors.append(
                forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != "NotOlderThan":
            errors.append(_unsupported(path, match, ("NotOlderThan",)))
        if options.continue_token:
            errors.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


def _unsupported(field: str, value: JSONValue, supported: Sequence[str]) -> FieldError:
    """Return L{not_supported} with the choices in the given order and the value as JSON, as for a named Go type."""
    choice = ", ".join(f'"{one}"' for one in supported)
    detail = f"supported values: {choice}"
    return valued("FieldValueNotSupported", "Unsupported value", field, value, detail, formatted=go_json(value))


def parse_create_options(query: Query) -> CreateOptions:
    """
    Parse the options of a POST.

    @raise APIStatusError: The options are invalid (422).
    """
    options = CreateOptions()
    if query:
        _refuse("CreateOptions", _validate_write_options(options, query))
    return options


def parse_update_options(query: Query) -> UpdateOptions:
    """
    Parse the options of a PUT.

    @raise APIStatusError: The options are invalid (422).
    """
    options = UpdateOptions()
    if query:
        _refuse("UpdateOptions", _validate_write_options(options, query))
    return options


def parse_patch_options(query: Query, media_type: str) -> PatchOptions:
    """
    Parse the options of a PATCH.

    @raise APIStatusError: The options are invalid, or not allowed for this media type (422).
    """
    options = PatchOptions(force=_bool(query, "force"))
    errors = []
    if media_type in APPLY:
        if not _first(query, "fieldManager"):
            errors.append(required("fieldManager", "is required for apply patch"))
    elif options.force is not None:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors += _validate_write_options(options, query)
    _refuse("PatchOptions", errors)
    return options


def _validate_write_options(options: WriteOptions, query: Query) -> list[FieldError]:
    """Set the options shared by all writes, and return their errors."""
    errors: list[FieldError] = []
    manager = _first(query, "fieldManager")
    if manager:
        options.field_manager = manager
        errors += validate_field_manager("fieldManager", manager)
    dry_run = query.get("dryRun")
    if dry_run:
        options.dry_run = True
        errors += _validate_dry_run(dry_run)
    validation = _first(query, "fieldValidation")
    if validation:
        options.field_validation = validation
        if validation not in _FIELD_VALIDATIONS:
            errors.append(not_supported("fieldValidation", validation, _FIELD_VALIDATIONS))
    return errors


def validate_field_manager(field: str, manager: str) -> list[FieldError]:
    """Validate the name of a field manager and return the errors."""
    errors = []
    if byte_length(manager) > _MANAGER_LENGTH:
        errors.append(too_long(field, _MANAGER_LENGTH))
    if not manager.isprintable():
        position = 0
        for character in manager:
            if not is_print(character):
                detail = f"invalid character {unicode_number(character)} (at position {position})"
                errors.append(invalid(field, manager, detail))
            position += byte_length(character)
    return errors


def is_field_manager(manager: str) -> bool:
    """Return whether L{validate_field_manager} returns no errors."""
    return manager.isascii() and len(manager) <= _MANAGER_LENGTH and manager.isprintable()


def _validate_dry_run(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ("All",))]


#: Allows the deletion of corrupt objects; the name is long to prevent accidental use.
_IGNORE: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"


def parse_delete_options_from_query(query: Query, unreadable: bool = False) -> DeleteOptions:
    """
    Parse the options of a DELETE without a body.

    @param unreadable: See L{parse_delete_options_from_body}.
    @raise APIStatusError: The options are invalid (400 or 422).
    """
    options = DeleteOptions()
    if not query:
        return options
    options.grace_period_seconds = _int64(query, "gracePeriodSeconds")
    options.orphan_dependents = _bool(query, "orphanDependents")
    policy = query.get("propagationPolicy")
    if policy:
        options.propagation_policy = policy[0]
    # An empty precondition in a query is ignored.
    options.precondition_uid = _first(query, "uid") or None
    options.precondition_resource_version = _first(query, "resourceVersion") or None
    ignore = _bool(query, _IGNORE)
    options.ignore_store_read_error = unreadable and bool(ignore)
    return _checked(options, query.get("dryRun") or ())


_DELETE_OPTIONS_SCHEME: Final = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"


def bad_delete_options(message: str) -> APIStatusError:
    """Return the error for a body that cannot be decoded, which had no code before 1.35."""
    return APIStatusError.bad_request(message).since(1, 35, APIStatusError.unknown(message))


def parse_delete_options_from_body(body: JSONValue, unreadable: bool = False) -> DeleteOptions:
    """
    Parse the options of a DELETE with a body, which replaces the query.

    The body may have any group and version, known or not, and unknown fields.

    @param body: The decoded document.
    @param unreadable: Whether the deletion of unreadable objects is supported; if not, the option is ignored silently.
    @raise APIStatusError: The options are invalid (400, 500 before 1.35; or 422).
    """
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise bad_delete_options(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_type(body)} into Go value of "
            'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    for name in ("apiVersion", "kind"):
        if not isinstance(body.get(name) or "", str):
            raise bad_delete_options(
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{json_type(body[name])} into Go struct field .{name} of type string"
            )
    kind, api_version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "meta.k8s.io/v1"
    if api_version.count("/") > 1:
        raise bad_delete_options(f"unexpected GroupVersion string: {api_version}")
    if kind != "DeleteOptions":
        raise bad_delete_options(
            f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_DELETE_OPTIONS_SCHEME}"'
        )
    options = DeleteOptions()
    options.grace_period_seconds = _typed(body, "gracePeriodSeconds", int, "int64")
    options.orphan_dependents = _typed(body, "orphanDependents", bool, "bool")
    options.propagation_policy = _typed(body, "propagationPolicy", str, "v1.DeletionPropagation")
    preconditions = _typed(body, "preconditions", dict, "v1.Preconditions") or {}
    within = "Preconditions.preconditions"
    options.precondition_uid = _typed(preconditions, "uid", str, "types.UID", within)
    options.precondition_resource_version = _typed(preconditions, "resourceVersion", str, "string", within)
    ignore = _typed(body, _IGNORE, bool, "bool")
    options.ignore_store_read_error = unreadable and bool(ignore)
    dry_run = _typed(body, "dryRun", list, "[]string") or []
    dry_run = ["" if value is None else value for value in dry_run]
    for value in dry_run:
        if not isinstance(value, str):
            _mistyped(value, "DeleteOptions.dryRun", "string")
    return _checked(options, dry_run)


def _typed(
    body: Mapping[str, JSONValue], name: str, kind: type, go_type: str, within: str = "DeleteOptions"
) -> JSONValue:
    value = body.get(name)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        _mistyped(value, f"{within}.{name}", go_type)
    if kind is int and value is not None and not -(1 << 63) <= value < 1 << 63:
        _mistyped(value, f"{within}.{name}", go_type)
    return value


def _mistyped(value: JSONValue, field: str, go_type: str) -> None:
    json_value = json_type(value)
    if json_value == "number" and go_type == "int64":
        json_value = f"number {value}"
    raise bad_delete_options(f"json: cannot unmarshal {json_value} into Go struct field {field} of type {go_type}")


def _checked(options: DeleteOptions, dry_run: Sequence[str]) -> DeleteOptions:
    errors = []
    policy = options.propagation_policy
    if policy is not None:
        if options.orphan_dependents is not None:
            errors.append(
                invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
            )
        if policy not in _POLICIES:
            errors.append(_unsupported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if dry_run:
        options.dry_run = True
        errors += _validate_dry_run(dry_run)
    if options.ignore_store_read_error:
        errors += [invalid(_IGNORE, True, f"cannot be set together with .{other}") for other in _beside(options)]
    _refuse("DeleteOptions", errors)
    return options


def _beside(options: DeleteOptions) -> Iterator[str]:
    """Return the options that are incompatible with the deletion of an unreadable object."""
    if options.dry_run:
        yield "dryRun"
    if options.propagation_policy is not None:
        yield "propagationPolicy"
    if options.orphan_dependents is not None:
        yield "orphanDependents"
    if options.grace_period_seconds is not None:
        yield "gracePeriodSeconds"
    if options.precondition_uid is not None or options.precondition_resource_version is not None:
        yield "preconditions"


def refuse_unreadable_collection(options: DeleteOptions) -> None:
    """
    Reject the option for collections: corrupt objects can only be deleted individually.

    @raise APIStatusError: The option is set (422).
    """
    if options.ignore_store_read_error:
        text = "is not allowed with DELETECOLLECTION, try again after removing the option"
        _refuse("DeleteOptions", [invalid(_IGNORE, True, text)])


def not_unreadable() -> FieldError:
    """Return the error of the option for an object that can be read or does not exist."""
    return invalid(_IGNORE, True, "is exclusively used to delete corrupt object(s), try again by removing this option")
