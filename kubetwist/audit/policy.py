"""
Which requests are told of, and how much: the C{Policy} of C{audit.k8s.io/v1}.

The first rule that fits decides; what none fits is not told of. @see: kubernetes/apiserver, C{pkg/audit/policy}.
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

#: Decisions that are remembered; all are forgotten when there are more.
MAX_CACHE_ENTRIES: Final = 16384
#: Longer paths are decided on each time; remembered, they would let a client fill the memory.
_MAX_CACHED_PATH_LENGTH: Final = 512


class BadPolicy(ValueError):
    """What was read is no policy; says why."""


@frozen
class RequestAuditConfig:
    """
    What a policy says about a request.

    @ivar level: The place in L{LEVELS}.
    @ivar omit_stages: The stages that are not told.
    @ivar omit_managed_fields: Whether objects are told without their managed fields.
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
        """Whether it means what a request is about."""
        if self.group not in (info.group, "*"):
            return False
        if not self.resources:
            return True
        if self.names and info.name not in self.names:
            return False
        part = info.subresource
        whole = f"{info.resource}/{part}" if part else info.resource
        return any(
            one in (whole, "*") or (part and one == f"*/{part}") or (one.endswith("/*") and one[:-2] == info.resource)
            for one in self.resources
        )


@frozen
class _Rule:
    """One rule; what is empty fits everything."""

    config: RequestAuditConfig
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    resources: Sequence[_Resources]
    namespaces: frozenset[str]
    paths: Sequence[str]

    def match(self, info: RequestInfo, user: UserInfo | None) -> bool:
        """Whether a request is what it means."""
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
    Rules in their order.

    @ivar default: What holds where none fits.
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
        What to tell of a request.

        @param info: L{kubetwist.http.requestinfo.RequestInfo}.
        @param user: Who sends it; L{None} when that is not known.
        """
        name = info.name if self._by_name else ""
        about: Any = (info.group, info.resource, info.subresource, info.namespace, name)
        if not info.is_resource_request:
            about = info.path
        key = (user and (user.name, user.groups), info.verb, about)
        config = self._cached.get(key)
        if config is None:
            config = next((rule.config for rule in self.rules if rule.match(info, user)), self.default)
            if len(info.path) <= _MAX_CACHED_PATH_LENGTH:
                if len(self._cached) >= MAX_CACHE_ENTRIES:
                    self._cached.clear()
                self._cached[key] = config
        return config


def path_matches(path: str, pattern: str) -> bool:
    """Whether C{pattern} means C{path}: all of it, what it begins with (a trailing C{*}), or everything (C{*})."""
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def read_policy(content: bytes) -> Policy:
    """
    Read a policy, of YAML or JSON.

    @raise BadPolicy: It is none, in the reference's words.
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
            raise BadPolicy(f"failed decoding: couldn't get version/kind; json parse error: {name} is no text")
        if not value_text:
            raise BadPolicy(f"failed decoding: Object '{name}' is missing in {quoted(str(value))}")
    if version == API_VERSION and kind == "Policy":
        return
    scheme = "k8s.io/apiserver/pkg/audit/scheme.go:30"
    raise BadPolicy(
        f"failed decoding: no kind {quoted(kind)} is registered for version {quoted(version)} in scheme"
        f" {quoted(scheme)}"
    )


# --- its fields, as Go would decode them

_STRINGS: Final = "[]string"


@frozen
class _Fields:
    """A Go struct: its name, and what its fields are: a type's name, or the struct that they hold a list of."""

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
    Look at the types of all fields; nulls are taken away.

    @return: What is unknown.
    @raise BadPolicy: Something is of another type than it must be.
    """
    for name in list(value):
        inner, where = value[name], f"{path}.{name}".lstrip(".")
        expected = type.fields.get(name)
        if expected is None:
            yield f'unknown field "{where}"'
            continue
        if inner is None:
            del value[name]
        elif isinstance(expected, _Fields):
            if not isinstance(inner, list):
                raise _mistyped(inner, struct, where, f"[]v1.{expected.name}")
            for number, one in enumerate(inner):
                if one is None:
                    inner[number] = one = {}
                if not isinstance(one, dict):
                    raise _mistyped(one, struct, where, f"v1.{expected.name}")
                # In complaints about what is unknown items are numbered, in those about types they are not.
                problems = _decode(one, expected, expected.name, where)
                yield from (text.replace(where, f"{where}[{number}]", 1) for text in problems)
        elif not _TYPES[expected](inner):
            raise _mistyped(inner, struct, where, expected)
        elif expected == _STRINGS:
            for one in inner:
                if one is not None and not isinstance(one, str):
                    raise _mistyped(one, struct, where, "string")
            value[name] = [one or "" for one in inner]


def _mistyped(value: JSONValue, struct: str, path: str, expected: str) -> BadPolicy:
    return BadPolicy(
        f"failed decoding: json: cannot unmarshal {json_type(value)} into Go struct field {struct}.{path} of type"
        f" {expected}"
    )


# --- its rules


def _causes(policy: JSONObject) -> Iterator[FieldError]:
    yield from _validate_stages(policy.get("omitStages", ()), "omitStages")
    for number, rule in enumerate(policy.get("rules", ())):
        path = f"rules[{number}]"
        level = rule.get("level", "")
        if not level:
            yield required(f"{path}.level")
        elif level not in LEVELS:
            # In their order, not sorted as elsewhere.
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
