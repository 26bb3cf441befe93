"""
The audit policy: C{Policy} of C{audit.k8s.io/v1}, which selects the audit level of a request.

The first matching rule decides; without a matching rule the level is C{None}.

@see: kubernetes/apiserver, C{pkg/audit/policy}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from twisted.logger import Logger

from ..api.decoding import BodyError, decode_yaml, json_type
from ..api.errors import FieldError, aggregate, invalid, required
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.names import validate_dns1123_subdomain
from ..api.resource import JSONObject, UserInfo

if TYPE_CHECKING:
    from ..http.requestinfo import RequestInfo

_log = Logger()

NONE, METADATA, REQUEST, REQUEST_RESPONSE = range(4)
LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")

REQUEST_RECEIVED: Final = "RequestReceived"
RESPONSE_STARTED: Final = "ResponseStarted"
RESPONSE_COMPLETE: Final = "ResponseComplete"
PANIC: Final = "Panic"
STAGES: Final = (REQUEST_RECEIVED, RESPONSE_STARTED, RESPONSE_COMPLETE, PANIC)

API_VERSION: Final = "audit.k8s.io/v1"

#: Maximum number of cached evaluations; the cache is cleared when it is full.
MAX_CACHE_ENTRIES: Final = 16384
#: Maximum length of a path that is cached; longer paths would let a client fill the memory.
_MAX_CACHED_PATH_LENGTH: Final = 512


class BadPolicy(ValueError):
    """The file is not a valid policy; the text is the reference's."""


@frozen
class RequestAuditConfig:
    """
    The audit settings of a request (C{audit.RequestAuditConfig}).

    @ivar level: The audit level, an index of L{LEVELS}.
    @ivar omit_stages: The stages without events.
    @ivar omit_managed_fields: Whether managed fields are removed from objects.
    """

    level: int
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


@frozen
class _Resources:
    """A C{GroupResources}."""

    group: str
    resources: Sequence[str]
    names: frozenset[str]

    def match(self, info: RequestInfo) -> bool:
        """Return whether the resource of a request matches."""
        if self.group not in (info.group, "*"):
            return False
        if not self.resources:
            return True
        if self.names and info.name not in self.names:
            return False
        subresource = info.subresource
        combined = f"{info.resource}/{subresource}" if subresource else info.resource
        return any(
            one in (combined, "*")
            or (subresource and one == f"*/{subresource}")
            or (one.endswith("/*") and one[:-2] == info.resource)
            for one in self.resources
        )


@frozen
class _Rule:
    """A C{PolicyRule}; empty fields match everything."""

    config: RequestAuditConfig
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    resources: Sequence[_Resources]
    namespaces: frozenset[str]
    paths: Sequence[str]

    def match(self, info: RequestInfo, user: UserInfo | None) -> bool:
        """Return whether a request matches."""
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or self.groups.isdisjoint(user.groups)):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            if not info.is_resource_request or (self.namespaces and info.namespace not in self.namespaces):
                return False
            return not self.resources or any(one.match(info) for one in self.resources)
        if self.paths:
            return not info.is_resource_request and any(path_matches(info.path, one) for one in self.paths)
        return True


@frozen(eq=False)
class Policy:
    """
    A compiled policy.

    @ivar default: The settings of requests that no rule matches.
    """

    rules: Sequence[_Rule]
    default: RequestAuditConfig = RequestAuditConfig(NONE)
    _by_name: bool = field(init=False)
    _cached: dict[Any, RequestAuditConfig] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        by_name = any(one.names for rule in self.rules for one in rule.resources)
        object.__setattr__(self, "_by_name", by_name)

    def evaluate_policy_rule(self, info: RequestInfo, user: UserInfo | None) -> RequestAuditConfig:
        """
        Return the audit settings of the first rule that matches a request.

        @param info: L{kubetwist.http.requestinfo.RequestInfo}.
        @param user: The authenticated user; L{None} if authentication failed.
        """
        name = info.name if self._by_name else ""
        target: Any = (info.group, info.resource, info.subresource, info.namespace, name)
        if not info.is_resource_request:
            target = info.path
        key = (user and (user.name, user.groups), info.verb, target)
        config = self._cached.get(key)
        if config is None:
            config = next((rule.config for rule in self.rules if rule.match(info, user)), self.default)
            if len(info.path) <= _MAX_CACHED_PATH_LENGTH:
                if len(self._cached) >= MAX_CACHE_ENTRIES:
                    self._cached.clear()
                self._cached[key] = config
        return config


def path_matches(path: str, pattern: str) -> bool:
    """Return whether C{pattern} matches C{path}: an exact path, a prefix with a trailing C{*}, or C{*}."""
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def read_policy(content: bytes) -> Policy:
    """
    Decode and compile a policy in YAML or JSON.

    @raise BadPolicy: The policy is invalid; the text is the reference's.
    """
    try:
        document = decode_yaml(content)
    except BodyError as error:
        raise BadPolicy(f"failed decoding: couldn't get version/kind; json parse error: {error}") from None
    value = document.value if document.value is not None else {}
    if not isinstance(value, dict):
        raise BadPolicy(
            "failed decoding: couldn't get version/kind; json parse error: json: cannot unmarshal"
            f" {json_type(value)} into Go value of type struct {{ APIVersion string"
            ' "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
    _check_kind(value)
    unknown = [*document.duplicates, *_decode(value, _POLICY, "Policy", "")]
    if unknown:
        _log.warn(
            "Audit policy contains errors, falling back to lenient decoding: strict decoding error: {errors}",
            errors=", ".join(unknown),
        )
    causes = list(_causes(value))
    if causes:
        raise BadPolicy(aggregate(causes).removeprefix(": "))
    if not value.get("rules"):
        raise BadPolicy("loaded illegal policy with 0 rules")
    return _compiled(value)


def _check_kind(value: JSONObject) -> None:
    kind, version = value.get("kind") or "", value.get("apiVersion") or ""
    for name, value_text in (("Kind", kind), ("apiVersion", version)):
        if not isinstance(value_text, str):
            raise BadPolicy(f"failed decoding: couldn't get version/kind; json parse error: {name} is not a string")
        if not value_text:
            raise BadPolicy(f"failed decoding: Object '{name}' is missing in {quoted(str(value))}")
    if version == API_VERSION and kind == "Policy":
        return
    scheme = "k8s.io/apiserver/pkg/audit/scheme.go:30"
    raise BadPolicy(
        f"failed decoding: no kind {quoted(kind)} is registered for version {quoted(version)} in scheme"
        f" {quoted(scheme)}"
    )


# --- the fields, decoded as in Go

_STRINGS: Final = "[]string"


@frozen
class _Fields:
    """A Go struct. A field has the name of a type, or the struct of the items of its list."""

    name: str
    fields: Mapping[str, str | _Fields]


_GROUP_RESOURCES: Final = _Fields(
    "GroupResources", {"group": "string", "resources": _STRINGS, "resourceNames": _STRINGS}
)
_POLICY_RULE: Final = _Fields(
    "PolicyRule",
    {
        "level": "string",
        "users": _STRINGS,
        "userGroups": _STRINGS,
        "verbs": _STRINGS,
        "resources": _GROUP_RESOURCES,
        "namespaces": _STRINGS,
        "nonResourceURLs": _STRINGS,
        "omitStages": _STRINGS,
        "omitManagedFields": "bool",
    },
)
_POLICY: Final = _Fields(
    "Policy",
    {
        "kind": "string",
        "apiVersion": "string",
        "metadata": "v1.ObjectMeta",
        "rules": _POLICY_RULE,
        "omitStages": _STRINGS,
        "omitManagedFields": "bool",
    },
)
_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "v1.ObjectMeta": lambda value: isinstance(value, dict),
    _STRINGS: lambda value: isinstance(value, list),
}


def _decode(value: JSONObject, type: _Fields, struct: str, path: str) -> Iterator[str]:
    """
    Check the types of all fields, and remove nulls.

    @param value: The decoded object; changed in place.
    @param type: The Go struct.
    @param struct: The name of the struct in error texts.
    @param path: The path of the object; C{""} for the policy itself.
    @return: Errors for unknown fields.
    @raise BadPolicy: A field has the wrong type.
    """
    for name in list(value):
        inner, field_path = value[name], f"{path}.{name}".lstrip(".")
        expected = type.fields.get(name)
        if expected is None:
            yield f'unknown field "{field_path}"'
            continue
        if inner is None:
            del value[name]
        elif isinstance(expected, _Fields):
            if not isinstance(inner, list):
                raise _type_error(inner, struct, field_path, f"[]v1.{expected.name}")
            for number, one in enumerate(inner):
                if one is None:
                    inner[number] = one = {}
                if not isinstance(one, dict):
                    raise _type_error(one, struct, field_path, f"v1.{expected.name}")
                # Errors for unknown fields have the index of the item, type errors do not.
                problems = _decode(one, expected, expected.name, field_path)
                yield from (text.replace(field_path, f"{field_path}[{number}]", 1) for text in problems)
        elif not _TYPES[expected](inner):
            raise _type_error(inner, struct, field_path, expected)
        elif expected == _STRINGS:
            for one in inner:
                if one is not None and not isinstance(one, str):
                    raise _type_error(one, struct, field_path, "string")
            value[name] = [one or "" for one in inner]


def _type_error(value: JSONValue, struct: str, path: str, expected: str) -> BadPolicy:
    return BadPolicy(
        f"failed decoding: json: cannot unmarshal {json_type(value)} into Go struct field {struct}.{path} of type"
        f" {expected}"
    )


# --- validation


def _causes(policy: JSONObject) -> Iterator[FieldError]:
    yield from _validate_stages(policy.get("omitStages", ()), "omitStages")
    for number, rule in enumerate(policy.get("rules", ())):
        path = f"rules[{number}]"
        level = rule.get("level", "")
        if not level:
            yield required(f"{path}.level")
        elif level not in LEVELS:
            # In the order of the levels, not sorted.
            choice = ", ".join(map(quoted, LEVELS))
            reason = f"Unsupported value: {quoted(level)}: supported values: {choice}"
            yield FieldError("FieldValueNotSupported", reason, f"{path}.level")
        urls = rule.get("nonResourceURLs", ())
        yield from _validate_path(urls, f"{path}.nonResourceURLs")
        yield from _validate_resource(rule.get("resources", ()), f"{path}.resources")
        yield from _validate_stages(rule.get("omitStages", ()), f"{path}.omitStages")
        if urls and (rule.get("resources") or rule.get("namespaces")):
            reason = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, reason)


def _validate_stages(stages: Sequence[str], path: str) -> Iterator[FieldError]:
    for number, stage in enumerate(stages):
        if stage not in STAGES:
            yield invalid(f"{path}[{number}]", stage, f"allowed stages are {','.join(STAGES)}")


def _validate_path(urls: Sequence[str], path: str) -> Iterator[FieldError]:
    for number, url in enumerate(urls):
        if url == "*":
            continue
        if not url.startswith("/"):
            reason = "non-resource URL rules must begin with a '/' character"
            yield invalid(f"{path}[{number}]", url, reason)
        if "*" in url[:-1]:
            reason = "non-resource URL wildcards '*' must be the final character of the rule"
            yield invalid(f"{path}[{number}]", url, reason)


def _validate_resource(resources: Sequence[JSONObject], path: str) -> Iterator[FieldError]:
    for one in resources:
        group = one.get("group", "")
        if group and group != "*":
            problems = validate_dns1123_subdomain(group)
            if problems:
                yield invalid(f"{path}.group", group, ",".join(problems))
        if one.get("resourceNames") and not one.get("resources"):
            reason = "using resourceNames requires at least one resource"
            yield invalid(f"{path}.resourceNames", one["resourceNames"], reason)


def _compiled(policy: JSONObject) -> Policy:
    omit_stages = frozenset(policy.get("omitStages", ()))
    omit = policy.get("omitManagedFields", False)
    rules = [
        _Rule(
            RequestAuditConfig(
                LEVELS.index(rule["level"]),
                omit_stages | frozenset(rule.get("omitStages", ())),
                rule.get("omitManagedFields", omit),
            ),
            frozenset(rule.get("users", ())),
            frozenset(rule.get("userGroups", ())),
            frozenset(rule.get("verbs", ())),
            [
                _Resources(one.get("group", ""), one.get("resources", ()), frozenset(one.get("resourceNames", ())))
                for one in rule.get("resources", ())
            ],
            frozenset(rule.get("namespaces", ())),
            rule.get("nonResourceURLs", ()),
        )
        for rule in policy["rules"]
    ]
    return Policy(rules, RequestAuditConfig(NONE, omit_stages, omit))
