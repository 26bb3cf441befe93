"""
Costs of the functions of all libraries of Kubernetes.

See kubernetes/apiserver, C{pkg/cel/library/cost.go}. Estimates decide whether a CustomResourceDefinition is valid, so
all costs are part of the API.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.cel.estimates import (
    LIST_CREATE_COST,
    MAX,
    ONE,
    REGEX_LENGTH_FACTOR,
    STRING_TRAVERSAL_FACTOR,
    STRUCT_CREATE_COST,
    AstNode,
    CallEstimate,
    Estimate,
    FunctionTracker,
    fixed,
    scale,
)
from kubetwist.cel.library.addresses import CIDR_TYPE, IP_TYPE
from kubetwist.cel.library.namedformats import FORMAT_TYPE, Format
from kubetwist.cel.library.quantities import QUANTITY_TYPE
from kubetwist.cel.library.urls import URL_TYPE
from kubetwist.cel.library.versions import SEMVER_TYPE
from kubetwist.cel.types import Kind
from kubetwist.cel.values import LISTS, MAPS, OpaqueValue, Value, entries, size_for_cost

#: The cost limit of an expression allows two checks.
_AUTHORIZATION_CHECK_COST: Final = 350_000

#: Selectors have at most one requirement per two characters.
_REQUIREMENTS_PER_CHARACTER: Final = 0.5
_REQUIREMENT: Final = float(LIST_CREATE_COST + STRUCT_CREATE_COST)

_MAX_FORMAT_SIZE: Final = 64
_MAX_FORMAT_PATTERN_SIZE: Final = 128

#: Functions with a nominal cost of 1, independent of their arguments.
_NOMINAL: Final = frozenset(
    (
        *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name"),
        *("allowed", "reason", "error", "errored"),
        *("masked", "prefixLength", "family", "isUnspecified", "isLoopback"),
        *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
        "format.named",
        *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo"),
        *("add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    )
)

#: Functions that traverse every element of a list, or every character of a string.
_TRAVERSING: Final = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))


def _traversal(value: Value) -> int:
    """Return the cost of traversing a value."""
    if type(value) is str:
        length = len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        return int(float(length) * STRING_TRAVERSAL_FACTOR)
    if type(value) is bytes:
        return int(float(len(value)) * STRING_TRAVERSAL_FACTOR)
    if isinstance(value, LISTS):
        return sum(map(_traversal, value))
    if isinstance(value, MAPS):
        return sum(_traversal(key) + _traversal(one) for key, one in entries(value))
    return 1


# Costs at run time.


def _track_size(factor: float) -> FunctionTracker:
    def track(arguments: Sequence[Value], result: Value) -> int | None:
        return scale(size_for_cost(arguments[0]), factor) if arguments else None

    return track


def _track_traversal(arguments: Sequence[Value], result: Value) -> int:
    return _traversal(arguments[0]) if arguments else 0


def _track_selector(arguments: Sequence[Value], result: Value) -> int | None:
    return _selector_estimate(fixed(size_for_cost(arguments[1]))).max if len(arguments) > 1 else None


def _track_join(arguments: Sequence[Value], result: Value) -> int | None:
    return scale(size_for_cost(result), 2 * STRING_TRAVERSAL_FACTOR) if arguments else None


def _text_cost(text: Value) -> int:
    # The length plus one, so that a regular expression costs something with an empty string, too.
    return scale(1 + size_for_cost(text), STRING_TRAVERSAL_FACTOR)


def _track_find(arguments: Sequence[Value], result: Value) -> int | None:
    if len(arguments) < 2:
        return None
    return _text_cost(arguments[0]) * scale(size_for_cost(arguments[1]), REGEX_LENGTH_FACTOR)


def _track_validate(arguments: Sequence[Value], result: Value) -> int | None:
    if len(arguments) < 2 or not isinstance(arguments[0], Format):
        return None
    return _text_cost(arguments[1]) * scale(arguments[0].pattern_length, REGEX_LENGTH_FACTOR)


def _contains_cost(arguments: Sequence[Value], parsed: bool) -> int:
    size = size_for_cost(arguments[0])
    cost = scale(size + size, STRING_TRAVERSAL_FACTOR)
    return cost + scale(size_for_cost(arguments[1]), STRING_TRAVERSAL_FACTOR) if parsed else cost


def _track_contains_ip(overload: str) -> FunctionTracker:
    def track(arguments: Sequence[Value], result: Value) -> int | None:
        return _contains_cost(arguments, overload == "cidr_contains_ip_string") if len(arguments) > 1 else None

    return track


def _track_contains_cidr(overload: str) -> FunctionTracker:
    def track(arguments: Sequence[Value], result: Value) -> int | None:
        if len(arguments) < 2:
            return None
        masking = scale(size_for_cost(arguments[0]), STRING_TRAVERSAL_FACTOR) + 1
        return _contains_cost(arguments, overload == "cidr_contains_cidr_string") + masking

    return track


def _track_equality(arguments: Sequence[Value], result: Value) -> int | None:
    return 1 if len(arguments) == 2 and isinstance(arguments[0], OpaqueValue) else None


_ONCE: Final = _track_size(STRING_TRAVERSAL_FACTOR)
_TWICE: Final = _track_size(2 * STRING_TRAVERSAL_FACTOR)

_TRACKERS: Final[dict[str, FunctionTracker | int]] = {
    "check": _AUTHORIZATION_CHECK_COST,
    **dict.fromkeys(_NOMINAL, 1),
    "fieldSelector": _track_selector,
    "labelSelector": _track_selector,
    **dict.fromkeys(_TRAVERSING, _track_traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _ONCE),
    "replace": _TWICE,
    "split": _TWICE,
    "join": _track_join,
    "find": _track_find,
    "findAll": _track_find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _ONCE),
    "ip.isCanonical": _TWICE,
    "validate": _track_validate,
    "_==_": _track_equality,
}

# Estimated costs, from the types and sizes of the arguments.

_Estimator = Callable[[str, str, AstNode | None, Sequence[AstNode]], CallEstimate | None]


def _estimate(cost: Estimate, size: Estimate | None = None) -> CallEstimate:
    return CallEstimate(cost, size)


def _selector_estimate(length: Estimate) -> Estimate:
    requirements = length.multiply_by_cost_factor(_REQUIREMENTS_PER_CHARACTER).multiply_by_cost_factor(_REQUIREMENT)
    return fixed(LIST_CREATE_COST).add(length.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)).add(requirements)


def _estimate_selector(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    return _estimate(_selector_estimate(arguments[0].size)) if len(arguments) == 1 else None


def _estimate_traversing(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if target is None:
        return None
    element = target.element()
    if element is None:
        # A string: indexOf and lastIndexOf.
        return _estimate(target.size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
    element_cost = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        element_cost = element_cost.add(element.size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
    return _estimate(target.size.multiply(element_cost))


def _estimate_parsed(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    """Estimate a function with one argument that returns a value of the same size."""
    if len(arguments) != 1:
        return None
    size = arguments[0].size
    return _estimate(size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR), size)


def _estimate_rewritten(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    """Estimate a member function that returns a value of at most the size of its target."""
    return (
        None if target is None else _estimate(target.size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR), target.size)
    )


def _estimate_replace(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if target is None or len(arguments) < 2:
        return None
    size, old, new = target.size, arguments[0].size, arguments[1].size
    max_count, max_kept = _max_replacements(size.max, old.min, new.max)
    min_count, min_kept = _min_replacements(size.min, old.max, new.min)
    replaced = Estimate(min_count, max_count).multiply(new).add(Estimate(min_kept, max_kept))
    return _estimate(size.multiply_by_cost_factor(2 * STRING_TRAVERSAL_FACTOR), replaced)


def _max_occurrences(size: int, old: int) -> int:
    return min(math.ceil(float(size) / float(old)), MAX)


def _max_replacements(size: int, old: int, new: int) -> tuple[int, int]:
    """Return the maximum number of replacements, and the length of the remaining text."""
    if not old:
        # The empty string occurs around every character.
        return min(size + 1, MAX), size
    return (0, size) if new <= old else (_max_occurrences(size, old), 0)


def _min_replacements(size: int, old: int, new: int) -> tuple[int, int]:
    """Return the minimum number of replacements, and the length of the remaining text."""
    if not old:
        return min(size + 1, MAX), size
    return (0, size) if old <= new else (_max_occurrences(size, old), 0)


def _estimate_split(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if target is None:
        return None
    max_count = target.size.max
    if len(arguments) > 1 and type(arguments[1].literal) is int:
        max_count = arguments[1].literal & MAX
    return _estimate(target.size.multiply_by_cost_factor(2 * STRING_TRAVERSAL_FACTOR), Estimate(0, max_count))


def _estimate_join(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if target is None:
        return None
    count, element = target.size, target.element()
    size = fixed(0) if element is None else count.multiply(element.size)
    if arguments:
        separators = Estimate(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size.add(arguments[0].size.multiply(separators))
    return _estimate(size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR), size)


def _estimate_find(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if target is None or not arguments:
        return None
    text = target.size.add(ONE).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)
    pattern = arguments[0].size.multiply_by_cost_factor(REGEX_LENGTH_FACTOR)
    return _estimate(text.multiply(pattern), Estimate(0, target.size.max))


def _estimate_text(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    return _estimate(arguments[0].size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)) if arguments else None


def _estimate_ip(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    return _estimate(ONE) if overload == "cidr_ip" else _estimate_text(function, overload, target, arguments)


def _estimate_canonical(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    return _estimate(arguments[0].size.multiply_by_cost_factor(2 * STRING_TRAVERSAL_FACTOR)) if arguments else None


#: Size of an IP address in bytes.
_ADDRESS: Final = Estimate(4, 16)


def _estimate_contains(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if not arguments:
        return None
    cost = _ADDRESS.add(_ADDRESS).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)
    if function == "containsCIDR":
        cost = cost.add(_ADDRESS.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)).add(ONE)
    if overload in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
        cost = cost.add(arguments[0].size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
    return _estimate(cost)


def _estimate_validate(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if not arguments:
        return None
    text = arguments[0].size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)
    return _estimate(text.multiply_by_cost_factor(_MAX_FORMAT_PATTERN_SIZE * REGEX_LENGTH_FACTOR))


_CONSTANT_EQUALITY: Final = frozenset(
    (
        IP_TYPE.name,
        CIDR_TYPE.name,
        QUANTITY_TYPE.name,
        SEMVER_TYPE.name,
        "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.ResourceCheck",
        "kubernetes.authorization.Decision",
    )
)


def _estimate_equality(
    function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
) -> CallEstimate | None:
    if len(arguments) != 2 or arguments[0].type != arguments[1].type:
        return None
    type_ = arguments[0].type
    if type_.kind not in (Kind.OPAQUE, Kind.STRUCT):
        return None
    if type_.name in _CONSTANT_EQUALITY:
        return _estimate(ONE)
    if type_.name == FORMAT_TYPE.name:
        return _estimate(Estimate(1, _MAX_FORMAT_SIZE).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
    if type_.name == URL_TYPE.name:
        # kube-apiserver uses only the size of the right operand.
        size = arguments[1].computed_size or ONE
        return _estimate(Estimate(1, size.max).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
    return None


def _fixed(cost: int) -> _Estimator:
    estimate = _estimate(fixed(cost))
    return lambda function, overload, target, arguments: estimate


_ESTIMATES: Final[dict[str, _Estimator]] = {
    "check": _fixed(_AUTHORIZATION_CHECK_COST),
    **dict.fromkeys(_NOMINAL, _fixed(1)),
    "fieldSelector": _estimate_selector,
    "labelSelector": _estimate_selector,
    **dict.fromkeys(_TRAVERSING, _estimate_traversing),
    "url": _estimate_parsed,
    "jsonpatch.escapeKey": _estimate_parsed,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _estimate_rewritten),
    "replace": _estimate_replace,
    "split": _estimate_split,
    "join": _estimate_join,
    "find": _estimate_find,
    "findAll": _estimate_find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _estimate_text),
    "ip": _estimate_ip,
    "ip.isCanonical": _estimate_canonical,
    "containsIP": _estimate_contains,
    "containsCIDR": _estimate_contains,
    "validate": _estimate_validate,
    "_==_": _estimate_equality,
}


class KubernetesCosts:
    """L{kubetwist.cel.estimates.CostModel} of Kubernetes."""

    def call_cost(self, function: str, overload: str) -> FunctionTracker | int | None:
        """Return the cost of a call at run time; see L{kubetwist.cel.estimates.CostModel.call_cost}."""
        if function == "containsIP":
            return _track_contains_ip(overload)
        if function == "containsCIDR":
            return _track_contains_cidr(overload)
        if function == "ip" and overload == "cidr_ip":
            return 1
        return _TRACKERS.get(function)

    def estimate_call_cost(
        self, function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
    ) -> CallEstimate | None:
        """
        Estimate the cost of a call.

        @param function: The name of the function.
        @param overload: The id of the overload.
        @param target: The target of a member function, otherwise C{None}.
        @param arguments: The other arguments.
        @return: C{None} for the default.
        """
        found = _ESTIMATES.get(function)
        return None if found is None else found(function, overload, target, arguments)
