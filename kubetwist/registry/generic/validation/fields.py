"""
Validation of single values, for the validation of all kinds.

The messages are part of the API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv6Address
from typing import Final

from ....api import errors as fielderrors
from ....api.addresses import parse_ip, validate_cidr, validate_ip
from ....api.errors import FieldError, forbidden, invalid, required, valued
from ....api.go.quote import quoted
from ....api.gostructs import label_selector_struct
from ....api.jsonequality import same_json
from ....api.jsontypes import JSONValue
from ....api.names import (
    validate_dns1123_label,
    validate_dns1123_subdomain,
    validate_label_value,
    validate_path_segment_name,
    validate_percent,
    validate_port_name,
    validate_qualified_name,
)
from ....api.objectmeta import METADATA
from ....api.quantity import Quantity
from ....api.resource import JSONObject

ErrorList = list[FieldError]
#: Returns the errors of a text.
Problems = Callable[[str], Sequence[str]]

MAX_INT32: Final = 2**31 - 1
#: The field path without a name, as the reference formats it.
NO_FIELD: Final = "[]"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IMMUTABLE: Final = "field is immutable"
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")


def dns_label(value: str) -> Sequence[str]:
    """Return the errors of a DNS label (RFC 1123)."""
    return validate_dns1123_label(value, False)


def dns_subdomain(value: str) -> Sequence[str]:
    """Return the errors of a DNS subdomain (RFC 1123)."""
    return validate_dns1123_subdomain(value, False)


def check(value: str, path: str, problems: Problems, errors: ErrorList) -> bool:
    """
    Validate a text.

    @param value: The text.
    @param path: The field path for errors.
    @param problems: Returns the errors of the text.
    @param errors: Receives the errors.
    @return: Whether the text is valid.
    """
    messages = problems(value)
    for text in messages:
        errors.append(invalid(path, value, text))
    return not messages


def need(value: str | None, path: str, problems: Problems, errors: ErrorList) -> None:
    """
    Validate a required text.

    @param value: The text; empty or L{None} if it is missing.
    @param path: The field path for errors.
    @param problems: Returns the errors of the text.
    @param errors: Receives the errors.
    """
    if not value:
        errors.append(required(path))
    else:
        check(value, path, problems, errors)


def one_of(value: str | None, choice: Sequence[str], path: str, errors: ErrorList) -> None:
    """
    Validate a required text that is one of several.

    @param value: The text; empty or L{None} if it is missing.
    @param choice: The supported values, in the order in which the error lists them.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    """
    if not value:
        errors.append(required(path))
    elif value not in choice:
        errors.append(unsupported(path, value, choice))


def unsupported(
    path: str, shown: JSONValue, choice: Iterable[str], value: JSONValue = None, go_type: str = ""
) -> FieldError:
    """
    Return the error for a value that is not one of the choices, which are shown in the given order.

    The value is shown as JSON, as those of Go's named string types are; see L{unsupported_string}.

    @param shown: The value as JSON shows it.
    @param value: The value, if earlier releases format it in Go syntax.
    @param go_type: Its Go type, see L{shown_in_go<kubetwist.api._gosyntax.shown_in_go>}; a named string type, a list or
        a map by default.
    """
    if value is None:
        value = shown
    return _unsupported(path, value, choice, go_type or _text_type(value), go_json(shown))


def unsupported_string(path: str, value: str, choice: Iterable[str]) -> FieldError:
    """Return the same for a value of type string in Go, which is shown as a string: C{field.Error.ErrorBody}."""
    return _unsupported(path, value, choice)


def _unsupported(
    path: str, value: JSONValue, choice: Iterable[str], go_type: str = "", formatted: str = ""
) -> FieldError:
    values = ", ".join(map(quote, choice))
    supported = f"supported values: {values}" if values else ""
    return valued("FieldValueNotSupported", "Unsupported value", path, value, supported, go_type, formatted)


def _text_type(value: JSONValue) -> str:
    """Return the type for a value of a named string type, whose JSON escapes more characters than Go syntax."""
    return "string" if isinstance(value, str) else ""


def quote(text: str) -> str:
    """Return a text in quotes, as Go prints it."""
    return quoted(text)


def go_json(value: JSONValue) -> str:
    """Return the JSON of a value as Go encodes it; the order of keys is kept."""
    return fielderrors.go_json(value)


def invalid_without_value(path: str, detail: str) -> FieldError:
    """Return the error for an invalid value that the message does not contain."""
    return FieldError("FieldValueInvalid", f"Invalid value: {detail}", path)


def invalid_name(path: str, name: str, detail: str, go_type: str = "string") -> FieldError:
    """
    Return the error for an invalid value of a named string type, which Go prints as JSON; see L{unsupported}.

    @param go_type: The Go type, if it has a C{String} method.
    """
    return invalid_shown(path, go_json(name), detail, name, go_type)


def invalid_shown(path: str, formatted: str, detail: str, value: JSONValue = None, go_type: str = "") -> FieldError:
    """
    Return the error for an invalid value that is already formatted.

    @param formatted: The value as JSON.
    @param detail: The end of the message.
    @param value: The value, if earlier releases format it in Go syntax.
    @param go_type: Its Go type, see L{shown_in_go<kubetwist.api._gosyntax.shown_in_go>}; C{""} if all releases format
        it as C{formatted}.
    """
    if not go_type:
        return FieldError("FieldValueInvalid", f"Invalid value: {formatted}: {detail}", path)
    return valued("FieldValueInvalid", "Invalid value", path, value, detail, go_type, formatted)


def invalid_selector(path: str, selector: JSONValue, detail: str) -> FieldError:
    """Return the error for an invalid label selector."""
    return invalid_shown(path, selector_shown(selector), detail, selector, "*v1.LabelSelector")


def go_struct(value: JSONObject, names: Sequence[str]) -> JSONObject:
    """Return an object as Go encodes structs without JSON names: capitalized names, no omitted fields."""
    return {name: value.get(name[0].lower() + name[1:]) for name in names}


def in_order(value: JSONValue, names: Sequence[str]) -> JSONValue:
    """Return an object with the fields C{names} first, the order of its struct in Go."""
    if not isinstance(value, dict):
        return value
    return {**{name: value[name] for name in names if name in value}, **value}


def selector_shown(selector: JSONValue) -> str:
    """Return a label selector as Go prints it."""
    if selector is None:
        return "null"
    return go_json(label_selector_struct(selector))


# --- numbers -----------------------------------------------------------------------------------------------------


def not_negative(value: int | None, path: str, errors: ErrorList) -> None:
    """Validate that a number is not negative."""
    if value is not None and value < 0:
        errors.append(invalid(path, value, NOT_NEGATIVE))


def positive(value: int | None, path: str, errors: ErrorList) -> None:
    """Validate that a number is positive."""
    if value is not None and value <= 0:
        errors.append(invalid(path, value, "must be greater than zero"))


def port_number(value: JSONValue, path: str, errors: ErrorList) -> None:
    """Validate the number of a port."""
    if not 1 <= (value or 0) <= 65535:
        errors.append(invalid(path, value or 0, PORT_RANGE))


def port_number_or_name(value: JSONValue, path: str, errors: ErrorList) -> None:
    """Validate the number or name of a port."""
    if isinstance(value, str):
        check(value, path, validate_port_name, errors)
    else:
        port_number(value, path, errors)


def number_or_percent(value: JSONValue, path: str, errors: ErrorList) -> None:
    """Validate a number or a percentage."""
    if isinstance(value, str):
        errors += [invalid(path, value, text, "intstr.IntOrString") for text in validate_percent(value)]
    else:
        not_negative(value, path, errors)


def percent(value: JSONValue) -> int | None:
    """Return the number of a percentage; L{None} for other values."""
    return int(value[:-1]) if isinstance(value, str) and not validate_percent(value) else None


def at_most_whole(value: JSONValue, path: str, errors: ErrorList) -> None:
    """Validate that a percentage is at most 100%; other values are valid."""
    percentage = percent(value)
    if percentage is not None and percentage > 100:
        errors.append(invalid(path, value, "must not be greater than 100%", "intstr.IntOrString"))


def share_or_number(value: JSONValue) -> int:
    """Return the number of a percentage, or of a number that may be a string; 0 for other values."""
    percentage = percent(value)
    if percentage is not None:
        return percentage
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else 0
    return value if isinstance(value, int) else 0


# --- quantities --------------------------------------------------------------------------------------------------


def quantity(value: JSONValue) -> Quantity:
    """Parse a quantity of a decoded object, which is well-formed."""
    return Quantity.parse(value)


def quantity_not_negative(value: JSONValue, path: str, errors: ErrorList) -> None:
    """Validate that a quantity is not negative."""
    if quantity(value).sign() < 0:
        errors.append(invalid(path, str(value), NOT_NEGATIVE))


def quantity_positive(value: JSONValue, path: str, errors: ErrorList) -> None:
    """Validate that a quantity is positive."""
    if quantity(value).sign() <= 0:
        errors.append(invalid(path, str(value), "must be greater than zero"))


# --- labels and selectors ----------------------------------------------------------------------------------------


def labels(found: JSONObject | None, path: str, errors: ErrorList) -> None:
    """Validate labels."""
    for key, value in sorted((found or {}).items()):
        check(key, path, validate_qualified_name, errors)
        check(value, path, validate_label_value, errors)


def annotation_keys(found: JSONObject | None, path: str, errors: ErrorList) -> None:
    """Validate the keys of annotations of an embedded object."""
    for key in sorted(found or {}):
        for text in validate_qualified_name(key.lower()):
            errors.append(invalid(path, key, text))


def label_selector(selector: JSONObject | None, path: str, errors: ErrorList, *, values: bool = True) -> None:
    """
    Validate a label selector.

    @param selector: The selector; L{None} if it is missing, which is valid.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param values: Whether the values must be valid values of labels.
    """
    if selector is None:
        return
    labels(selector.get("matchLabels"), f"{path}.matchLabels", errors)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        selector_requirement(expression, f"{path}.matchExpressions[{index}]", errors, values)


def selector_requirement(expression: JSONObject, path: str, errors: ErrorList, values: bool = True) -> None:
    """
    Validate one expression of a label selector.

    @param expression: The expression.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param values: Whether the values must be valid values of labels.
    """
    operator, expected = expression.get("operator", ""), expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not expected:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if expected:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", detail))
    else:
        errors.append(invalid_name(f"{path}.operator", operator, "not a valid selector operator"))
    check(expression.get("key", ""), f"{path}.key", validate_qualified_name, errors)
    if values:
        for index, value in enumerate(expected):
            check(value, f"{path}.values[{index}]", validate_label_value, errors)


def is_selector(selector: JSONObject) -> bool:
    """Return whether a label selector is valid."""
    errors: ErrorList = []
    label_selector(selector, "", errors)
    return not errors


def selects(selector: JSONObject, found: JSONObject) -> bool:
    """Return whether a label selector matches the labels C{found}."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if found.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key", ""), expression.get("operator")
        values = expression.get("values") or ()
        if operator == "In":
            matches = key in found and found[key] in values
        elif operator == "NotIn":
            matches = key not in found or found[key] not in values
        elif operator == "Exists":
            matches = key in found
        else:
            matches = key not in found
        if not matches:
            return False
    return True


def selector_empty(selector: JSONObject | None) -> bool:
    """Return whether a label selector has no requirements."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


# --- changes -----------------------------------------------------------------------------------------------------


def immutable(
    value: JSONValue,
    old: JSONValue,
    path: str,
    errors: ErrorList,
    shown: str | None = None,
    *,
    untyped: bool = False,
    go_type: str = "",
) -> None:
    """
    Check that a value is unchanged.

    @param value: The new value.
    @param old: The old value.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param shown: The formatted value for the message; JSON by default.
    @param untyped: Whether the value may contain any JSON type, so that C{1} must be distinguished from C{True}.
    @param go_type: The Go type of the value, see L{shown_in_go<kubetwist.api._gosyntax.shown_in_go>}.
    """
    if value != old or (untyped and not same_json(value, old)):
        if shown is not None:
            errors.append(invalid_shown(path, shown, IMMUTABLE, value, go_type))
        else:
            errors.append(invalid(path, value, IMMUTABLE, go_type))


# --- addresses ---------------------------------------------------------------------------------------------------

#: The feature gate of the parameter C{strict} of L{ip} and L{cidr}.
STRICT_ADDRESSES: Final = "StrictIPCIDRValidation"


def ip(value: str, path: str, errors: ErrorList, *, strict: bool = True) -> None:
    """
    Validate an IP address, which need not be in canonical form.

    @param strict: Whether ambiguous notations are errors; see the feature gate C{StrictIPCIDRValidation}.
    """
    for text in validate_ip(value, strict, canonical=False):
        errors.append(invalid(path, value, text))


def cidr(value: str, path: str, errors: ErrorList, *, strict: bool = True) -> None:
    """
    Validate a CIDR, which need not be in canonical form.

    @param strict: Whether ambiguous notations are errors; see L{ip}.
    """
    for text in validate_cidr(value, strict, canonical=False):
        errors.append(invalid(path, value, text))


def is_ipv6(value: str) -> bool:
    """Return whether a text is an IPv6 address."""
    return isinstance(parse_ip(value), IPv6Address)


#: The error for an endpoint on a loopback address.
NO_LOOPBACK: Final = "may not be in the loopback range (127.0.0.0/8, ::1/128)"


def non_special_ip(value: str, path: str, errors: ErrorList) -> None:
    """Validate the address of an endpoint: not unspecified, loopback, link-local or link-local multicast."""
    address = parse_ip(value)
    if address is None:
        errors.append(invalid(path, value, "must be a valid IP address"))
        return
    if address.is_unspecified:
        errors.append(invalid(path, value, f"may not be unspecified ({value})"))
    if address.is_loopback:
        errors.append(invalid(path, value, NO_LOOPBACK))
    if address.is_link_local:
        errors.append(invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if address.is_multicast and str(address).lower().startswith(("224.0.0.", "ff02:", "ff12:")):
        errors.append(invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))


# --- keys and paths ----------------------------------------------------------------------------------------------


def local_path(value: str, path: str, errors: ErrorList) -> None:
    """Validate a relative path without C{..}."""
    if value.startswith("/"):
        errors.append(invalid(path, value, "must be a relative path"))
    no_backsteps(value, path, errors)


def no_backsteps(value: str, path: str, errors: ErrorList) -> None:
    """Validate that a path has no element C{..}."""
    if ".." in value.split("/"):
        errors.append(invalid(path, value, "must not contain '..'"))


def local_file_path(value: str, path: str, errors: ErrorList) -> None:
    """Validate a relative path that does not start with two dots, which the kubelet reserves."""
    local_path(value, path, errors)
    # The reference skips values that have an error already, except the shortest.
    if value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))


def id_number(value: int | None, path: str, errors: ErrorList) -> None:
    """Validate the id of a user or group."""
    if value is not None and not 0 <= value <= MAX_INT32:
        errors.append(invalid(path, value, f"must be between 0 and {MAX_INT32}, inclusive"))


#: The fields of the metadata that templates must not set.
_NOT_IN_TEMPLATES: Final = tuple(name for name in METADATA if name not in ("labels", "annotations"))


def template_metadata(metadata: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate the metadata of a template, which may have only labels and annotations."""
    annotation_keys(metadata.get("annotations"), f"{path}.annotations", errors)
    labels(metadata.get("labels"), f"{path}.labels", errors)
    for name in _NOT_IN_TEMPLATES:
        # Zero values are ignored, except for the pointer deletionGracePeriodSeconds.
        if metadata.get(name) or (name == "deletionGracePeriodSeconds" and metadata.get(name) is not None):
            # The reference uses the name of the field in Go.
            errors.append(forbidden(f"{path}.{'uID' if name == 'uid' else name}", "cannot be set"))


def needed_segment(value: str | None, path: str, errors: ErrorList) -> None:
    """Validate a required text that is a path segment of a URL."""
    if not value:
        errors.append(required(path))
    else:
        check(value, path, validate_path_segment_name, errors)
