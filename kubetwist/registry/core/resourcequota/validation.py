"""ConfigMaps, Secrets, LimitRanges, ResourceQuotas; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

from ....api.decoding import BodyError, decode_json, json_type
from ....api.errors import MOST_CAUSES, Cause, duplicate, forbidden, invalid, required, too_long
from ....api.names import config_map_key_problems, qualified_name_problems
from ....api.objectmeta import Parts
from ....api.resource import JSONObject
from ...generic.validation.fields import (
    Causes,
    check,
    go_json,
    immutable,
    invalid_name,
    invalid_shown,
    quantity,
    quantity_not_negative,
)
from ..pod.validation.resources import container_resource_name, is_extended, is_huge_pages, is_integer, resource_name

_MAX_DATA: Final = 1048576
_FROZEN: Final = "field is immutable when `immutable` is set"
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"


def encoded(strings: JSONObject) -> dict[str, str]:
    """Texts as C{data} holds them."""
    return {key: b64encode((text or "").encode()).decode() for key, text in strings.items()}


def decoded_size(text: str | None) -> int:
    """How many bytes a value in base64 stands for."""
    return 0 if not text else len(text) // 4 * 3 - (2 if text.endswith("==") else text.endswith("="))


def validate_config_map(obj: JSONObject) -> list[Cause]:
    """Keys that can be files' names, each once, and not too much in all."""
    causes: Causes = []
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    size = 0
    for key in sorted(data):
        check(key, f"data[{key}]", config_map_key_problems, causes)
        if key in binary:
            causes.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        text = data[key]
        size += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    for key in sorted(binary):
        check(key, f"binaryData[{key}]", config_map_key_problems, causes)
        size += decoded_size(binary[key])
    if size > _MAX_DATA:
        # The path is the empty one, in the reference's spelling.
        causes.append(too_long("[]", _MAX_DATA))
    return causes


def _frozen(obj: JSONObject, old: JSONObject, names: tuple[str, ...], causes: Causes, semantic: str = "") -> None:
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        causes.append(forbidden("immutable", _FROZEN))
    for name in names:
        new, held = obj.get(name), old.get(name)
        # The reference does not distinguish an empty from an absent map in a ConfigMap's data.
        if name == semantic:
            new, held = new or None, held or None
        if new != held:
            causes.append(forbidden(name, _FROZEN))


def validate_config_map_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What is marked immutable stays."""
    causes: Causes = []
    _frozen(obj, old, ("data", "binaryData"), causes, semantic="data")
    return Parts(causes, validate_config_map(obj))


# --- secrets -----------------------------------------------------------------------------------------------------


def validate_secret(obj: JSONObject) -> list[Cause]:
    """Keys that can be files' names, not too much in all, and what the type asks for."""
    causes: Causes = []
    data = obj.get("data") or {}
    size = 0
    for key in sorted(data):
        check(key, f"data[{key}]", config_map_key_problems, causes)
        size += decoded_size(data[key])
    if size > _MAX_DATA:
        causes.append(too_long("data", _MAX_DATA))
    kind = obj.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME):
            causes.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    elif kind == "kubernetes.io/dockercfg":
        _json(data, ".dockercfg", causes)
    elif kind == "kubernetes.io/dockerconfigjson":
        _json(data, ".dockerconfigjson", causes)
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            causes.append(required("data[username]"))
            causes.append(required("data[password]"))
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            causes.append(required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                causes.append(required(f"data[{key}]"))
    return causes


def _json(data: JSONObject, key: str, causes: Causes) -> None:
    path = f"data[{key}]"
    if key not in data:
        causes.append(required(path))
        return
    text = ""
    try:
        found = decode_json(b64decode(data[key] or "")).value
        if found is not None and not isinstance(found, dict):
            text = f"json: cannot unmarshal {json_type(found)} into Go value of type map[string]interface {{}}"
    except BodyError as error:
        text = str(error)
    if text:
        causes.append(Cause("FieldValueInvalid", f'Invalid value: "<secret contents redacted>": {text}', path))


def validate_secret_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The type stays, and what is marked immutable."""
    causes: Causes = []
    immutable(obj.get("type"), old.get("type"), "type", causes)
    _frozen(obj, old, ("data",), causes)
    return Parts(causes, validate_secret(obj))


# --- limit ranges ------------------------------------------------------------------------------------------------


def validate_limit_range(obj: JSONObject) -> list[Cause]:
    """Limits that agree with each other, one list per kind of thing."""
    causes: Causes = []
    kinds: set[str] = set()
    for index, item in enumerate(obj["spec"].get("limits") or ()):
        path, kind = f"spec.limits[{index}]", item.get("type") or ""
        before = len(causes)
        causes += [invalid_name(f"{path}.type", kind, text) for text in qualified_name_problems(kind)]
        if len(causes) == before and "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            text = "must be a standard limit type or fully qualified"
            causes.append(invalid_name(f"{path}.type", kind, text))
        if kind in kinds:
            causes.append(duplicate(f"{path}.type", kind))
        kinds.add(kind)
        _limits(item, kind, path, causes)
    return causes


def _limits(item: JSONObject, kind: str, path: str, causes: Causes) -> None:
    parts = {name: item.get(name) or {} for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")}
    check_name = container_resource_name if kind in ("Container", "Pod") else resource_name
    for name, found in parts.items():
        if name in ("default", "defaultRequest") and kind == "Pod":
            if found:
                causes.append(forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'"))
                parts[name] = {}
            continue
        stored = "storage" in parts["min"] or "storage" in parts["max"]
        if name == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim" and not stored:
            text = "either minimum or maximum storage value is required, but neither was provided"
            causes.append(required(f"{path}.limits", text))
        for resource in sorted(found):
            check_name(resource, f"{path}.{name}[{resource}]", causes)
    resources = sorted(set().union(*parts.values()))
    for resource in resources:
        _compare(parts, resource, path, causes)


#: Of two amounts, which must not be the greater, which is the other, below which the cause stands, and what it shows.
_ORDER: Final = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    *(
        (lower, upper, "defaultRequest", "defaultRequest", text)
        for lower, upper, text in (
            ("min", "defaultRequest", "min value {} is greater than default request value {}"),
            ("defaultRequest", "max", "default request value {} is greater than max value {}"),
            ("defaultRequest", "default", "default request value {} is greater than default limit value {}"),
        )
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
#: The greatest amount whose thousandths are a number of Go's.
_MOST_MILLI: Final = ((1 << 63) - 1) // 1000


def _compare(parts: JSONObject, resource: str, path: str, causes: Causes) -> None:
    for lower, upper, below, shown, text in _ORDER:
        low, high = parts[lower].get(resource), parts[upper].get(resource)
        if low is not None and high is not None and quantity(low) > quantity(high):
            causes.append(invalid(f"{path}.{below}[{resource}]", str(parts[shown][resource]), text.format(low, high)))
    _ratio(parts, resource, path, causes)
    firm = is_extended(resource) or is_huge_pages(resource)
    limit, request = parts["default"].get(resource), parts["defaultRequest"].get(resource)
    if firm and limit is not None and request is not None and quantity(limit) != quantity(request):
        text = f"default value {limit} must equal to defaultRequest value {request} in {resource}"
        causes.append(invalid(f"{path}.defaultRequest[{resource}]", str(request), text))


def _ratio(parts: JSONObject, resource: str, path: str, causes: Causes) -> None:
    ratio = parts["maxLimitRequestRatio"].get(resource)
    if ratio is None:
        return
    where = f"{path}.maxLimitRequestRatio[{resource}]"
    if quantity(ratio) < quantity("1"):
        causes.append(invalid(where, str(ratio), f"ratio {ratio} is less than 1"))
    low, high = parts["min"].get(resource), parts["max"].get(resource)
    if low is None or high is None:
        return
    amounts = [quantity(one) for one in (ratio, high, low)]
    # Thousandths, unless one of them has too many.
    exponent = -3 if all(one.scaled() < _MOST_MILLI for one in amounts) else 0
    most, highest, lowest = (one.scaled(exponent) for one in amounts)
    wanted = most / 1000 if exponent else float(most)
    if lowest and wanted > highest / lowest:
        causes.append(invalid(where, str(ratio), f"ratio {ratio} is greater than max/min = {highest / lowest:f}"))


# --- quotas ------------------------------------------------------------------------------------------------------

_SCOPES: Final = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)


def _amounts(found: JSONObject | None, path: str, causes: Causes) -> None:
    for name in sorted(found or {}):
        here = f"{path}[{name}]"
        _quota_name(name, here, causes)
        value = (found or {})[name]
        quantity_not_negative(value, here, causes)
        if is_integer(name) and quantity(value).scaled(-3) % 1000:
            causes.append(invalid(here, str(value), "must be an integer"))


def _quota_name(name: str, path: str, causes: Causes) -> None:
    resource_name(name, path, causes)
    if "/" not in name and not _is_standard(name):
        causes.append(invalid_name(path, name, "must be a standard resource for quota"))


def _is_standard(name: str) -> bool:
    return name in _QUOTA or name.startswith(("hugepages-", "requests.hugepages-"))


_QUOTA: Final = frozenset(
    (
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    )
)


def validate_resource_quota(obj: JSONObject) -> list[Cause]:
    """Resources and scopes that can be counted."""
    causes: Causes = []
    spec = obj["spec"]
    _amounts(spec.get("hard"), "spec.hard", causes)
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    beyond = _Beyond(hard)
    unknown: Cause | None = None
    for scope in scopes:
        if scope not in _SCOPES:
            # Said once, as it quotes the whole list; as is what goes beyond a scope.
            unknown = unknown or invalid("spec.scopes", scopes, "unsupported scope")
            causes.append(unknown)
        beyond.tell(scope, lambda: invalid("spec.scopes", scopes, _BEYOND), causes)
    _conflicts(scopes, "spec.scopes", scopes, causes)
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    beyond = _Beyond(hard)
    for expression in expressions:
        _scope_expression(expression, expressions, beyond, causes)
    # The reference shows C{scopes} here, too.
    _conflicts([one.get("scopeName") for one in expressions], _EXPRESSIONS, spec.get("scopes"), causes)
    return causes


def _conflicts(scopes: Sequence[Any], path: str, shown: Any, causes: Causes) -> None:
    """Scopes that nothing is in both of."""
    for one, other in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
        if one in scopes and other in scopes:
            causes.append(invalid(path, shown, "conflicting scopes"))


class _Beyond:
    """
    Tells of resources that a scope says nothing about.

    What quotes all scopes is made once, and how many there are found out once per scope; no more is told than anybody
    reads, so that thousands of scopes and resources do not make millions of causes.
    """

    def __init__(self, hard: JSONObject) -> None:
        self._standard = [name for name in sorted(hard) if _is_standard(name)]
        self._counts: dict[str, int] = {}
        self._cause: Cause | None = None

    def tell(self, scope: str, make: Callable[[], Cause], causes: Causes) -> None:
        """
        Add a cause for each resource that is beyond C{scope}.

        @param make: Makes it, at the first of them.
        """
        count = self._counts.get(scope)
        if count is None:
            known = _counted_within(scope)
            count = self._counts[scope] = 0 if known is None else sum(name not in known for name in self._standard)
        if count:
            if self._cause is None:
                self._cause = make()
            causes.extend([self._cause] * min(count, max(MOST_CAUSES - len(causes), 1)))


def _counted_within(scope: str) -> tuple[str, ...] | None:
    """The standard resources that a scope can be applied to; L{None} if there is no such scope."""
    if scope not in _SCOPES:
        return None
    if scope == "VolumeAttributesClass":
        return ("persistentvolumeclaims", "requests.storage")
    if scope == "BestEffort":
        return ("pods",)
    return ("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")


_ALWAYS_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


_BEYOND: Final = "unsupported scope applied to resource"
#: The reference leaves the index out.
_EXPRESSIONS: Final = "spec.scopeSelector.matchExpressions"


def _scope_expression(
    expression: JSONObject, expressions: Sequence[JSONObject], beyond: _Beyond, causes: Causes
) -> None:
    name, operator = expression.get("scopeName") or "", expression.get("operator") or ""
    values, path = expression.get("values") or (), _EXPRESSIONS
    if name not in _SCOPES:
        causes.append(invalid_name(f"{path}.scopeName", name, "unsupported scope"))
    beyond.tell(name, lambda: invalid_shown(path, _shown_selector(expressions), _BEYOND), causes)
    if name in _SCOPES and name not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
        causes.append(invalid(f"{path}.operator", operator, _ALWAYS_EXISTS))
    if operator in ("In", "NotIn"):
        if not values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            causes.append(required(f"{path}.values", text))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            causes.append(invalid(f"{path}.values", list(values), text))
    else:
        causes.append(invalid_name(f"{path}.operator", operator, "not a valid selector operator"))


def _shown_selector(expressions: Sequence[JSONObject]) -> str:
    """As Go has it."""
    parts = [
        {"ScopeName": one.get("scopeName"), "Operator": one.get("operator"), "Values": one.get("values")}
        for one in expressions
    ]
    return go_json({"MatchExpressions": parts})


def validate_resource_quota_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The scopes stay."""
    causes = validate_resource_quota(obj)
    new, was = obj["spec"].get("scopes"), old["spec"].get("scopes")
    if set(new or ()) != set(was or ()):
        causes.append(invalid("spec.scopes", new, "field is immutable"))
    return causes


def validate_resource_quota_status(obj: JSONObject) -> list[Cause]:
    """Amounts."""
    causes: Causes = []
    status = obj.get("status") or {}
    _amounts(status.get("hard"), "status.hard", causes)
    _amounts(status.get("used"), "status.used", causes)
    return causes
