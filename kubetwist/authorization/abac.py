"""
Attribute-based access control: each line of the policy file allows a subject some requests.

@see: kubernetes, C{pkg/auth/authorizer/abac/abac.go} and C{pkg/apis/abac}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import orjson
from attrs import evolve, frozen

from twisted.logger import Logger
from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.documents import json_type
from ..api.flagvalues import FlagValues
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..api.users import AUTHENTICATED
from ..interfaces import (
    IAuthorizer,
    IRuleExplainer,
    IRuleResolver,
)

if TYPE_CHECKING:
    from ._context import AuthorizationContext

#: Bytes of a line.
MAX_LINE_LENGTH: Final = 64 * 1024

_GROUP: Final = "abac.authorization.kubernetes.io"
_READ_VERBS: Final = ("get", "list", "watch")
_ALLOW: Final = Verdict(Decision.ALLOW)
_NO_MATCH: Final = Verdict(Decision.NO_OPINION, "No policy matched.")

_OLD_FIELDS: Final = ("user", "group", "resource", "namespace")
_FIELDS: Final = ("user", "group", "apiGroup", "resource", "namespace", "nonResourcePath")

_log = Logger()


class InvalidPolicy(ValueError):
    """A file, or a line of it, that makes no sense."""


@frozen
class Policy:
    """
    One line, in the sense of the newest version.

    @ivar line: Its number in the file.
    @ivar user: Whom it is about; when C{group} is there as well, both must be.
    """

    line: int
    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    path: str = ""

    def is_about(self, user: UserInfo) -> bool:
        """Return whether a user is whom it is about."""
        if self.user and self.user != user.name:
            return False
        if self.group:
            return self.group in user.groups
        return bool(self.user)

    def matches(self, attributes: AuthorizerAttributes) -> bool:
        """Return whether it lets whom it is about do something."""
        if self.readonly and attributes.verb not in _READ_VERBS:
            return False
        if attributes.is_resource_request:
            return (
                self.namespace in ("*", attributes.namespace)
                and self.resource in ("*", attributes.resource)
                and self.api_group in ("*", attributes.group)
            )
        path = self.path
        return path in ("*", attributes.path) or (path.endswith("*") and attributes.path.startswith(path.rstrip("*")))

    def shown(self) -> JSONObject:
        """Return where it stands, and whom it is about."""
        return {"line": self.line, "user": self.user, "group": self.group}

    @property
    def verbs(self) -> list[str]:
        """What it lets them do, as rules have it."""
        return list(_READ_VERBS) if self.readonly else ["*"]


class Policies:
    """
    The lines of a file, found by whom they are about.

    @ivar unversioned: How many of them are in the form without a version.
    """

    def __init__(self, policies: Iterable[Policy] = (), unversioned: int = 0) -> None:
        self.all = list(policies)
        self.unversioned = unversioned
        self._of: dict[tuple[str, str], list[Policy]] = {}
        for policy in self.all:
            who = ("user", policy.user) if policy.user else ("group", policy.group)
            self._of.setdefault(who, []).append(policy)

    def of(self, user: UserInfo) -> Iterable[Policy]:
        """Return those that are about a user."""
        find = self._of.get
        for policy in find(("user", user.name), ()):
            if policy.is_about(user):
                yield policy
        for group in user.groups:
            if group:
                yield from find(("group", group), ())


def read_policies(path: str, content: bytes) -> Policies:
    """
    Read a file: an object a line, but for those that are blank or begin with C{#}.

    @raise BadPolicy: A line is invalid; the message has its number.
    """
    policies = []
    unversioned = 0
    for number, line in enumerate(content.split(b"\n"), 1):
        if len(line) > MAX_LINE_LENGTH:
            raise InvalidPolicy(
                f"error reading policy file {path}: line {number} is longer than {MAX_LINE_LENGTH} bytes"
            )
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        try:
            policy, versioned = _policy(text, number)
        except ValueError as error:
            shown = text.decode("utf-8", "replace")
            raise InvalidPolicy(f"error reading policy file {path}, line {number}: {shown}: {error}") from None
        policies.append(policy)
        unversioned += not versioned
    return Policies(policies, unversioned)


def _policy(text: bytes, number: int) -> tuple[Policy, bool]:
    """
    Parse one line; return the policy and whether the line has a version.

    @raise ValueError: It is none.
    """
    obj = orjson.loads(text)
    if not isinstance(obj, dict):
        raise ValueError(f"json: cannot unmarshal {json_type(obj)} into Go value of type v0.Policy")
    version, kind = _text(obj, "apiVersion", "TypeMeta"), _text(obj, "kind", "TypeMeta")
    if version == f"{_GROUP}/v1beta1" and kind == "Policy":
        spec = obj.get("spec")
        if spec is not None and not isinstance(spec, dict):
            raise ValueError(
                f"json: cannot unmarshal {json_type(spec)} into Go struct field Policy.spec of type v1beta1.PolicySpec"
            )
        return _newest(spec or {}, number), True
    if version and (version, kind) != (f"{_GROUP}/v0", "Policy"):
        raise ValueError(f"no kind {quoted(kind)} is registered for version {quoted(version)}")
    return _oldest(obj, number), bool(version and kind)


def _newest(spec: JSONObject, number: int) -> Policy:
    texts = {name: _text(spec, name, "PolicySpec.spec") for name in _FIELDS}
    user, group = texts["user"], texts["group"]
    if "*" in (user, group):
        user, group = "", AUTHENTICATED
    return Policy(
        number,
        user,
        group,
        _switch(spec, "PolicySpec.spec"),
        texts["apiGroup"],
        texts["resource"],
        texts["namespace"],
        texts["nonResourcePath"],
    )


def _oldest(obj: JSONObject, number: int) -> Policy:
    """Return what is left out stands for everything here, and there are no groups of the API yet."""
    texts = {name: _text(obj, name, "Policy") for name in _OLD_FIELDS}
    user, group = texts["user"], texts["group"]
    if not (user or group) or "*" in (user, group):
        user, group = "", AUTHENTICATED
    namespace, resource = texts["namespace"], texts["resource"]
    return Policy(
        number,
        user,
        group,
        _switch(obj, "Policy"),
        "*",
        resource or "*",
        namespace or "*",
        "" if namespace or resource else "*",
    )


def _text(obj: JSONObject, name: str, where: str) -> str:
    value = obj.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(_mismatch(value, name, where, "string"))
    return value


def _switch(obj: JSONObject, where: str) -> bool:
    value = obj.get("readonly")
    if value is not None and not isinstance(value, bool):
        raise ValueError(_mismatch(value, "readonly", where, "bool"))
    return bool(value)


def _mismatch(value: JSONValue, name: str, where: str, wanted: str) -> str:
    return f"json: cannot unmarshal {json_type(value)} into Go struct field {where}.{name} of type {wanted}"


@implementer(IAuthorizer, IRuleResolver, IRuleExplainer)
class ABAC:
    """Allows what a line of a file allows; holds no opinion about the rest."""

    name: ClassVar[str] = "ABAC"

    def __init__(self, policies: Policies) -> None:
        self.policies = policies

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{IAuthorizer.authorize}."""
        for policy in self.policies.of(attributes.user):
            if policy.matches(attributes):
                return _ALLOW
        return _NO_MATCH

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}."""
        rules: list[JSONObject] = []
        paths: list[JSONObject] = []
        for policy in sorted(self.policies.of(user), key=lambda policy: policy.line):
            if policy.namespace not in ("*", namespace):
                continue
            if policy.resource:
                rules.append({"verbs": policy.verbs, "apiGroups": [policy.api_group], "resources": [policy.resource]})
            if policy.path:
                paths.append({"verbs": policy.verbs, "nonResourceURLs": [policy.path]})
        return {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}

    def explain(self, attributes: AuthorizerAttributes) -> JSONObject | None:
        """See L{IRuleExplainer.explain}: the line that allows."""
        for policy in self.policies.of(attributes.user):
            if policy.matches(attributes):
                return {"policy": policy.shown()}
        return None

    def near_misses(self, attributes: AuthorizerAttributes) -> Iterator[tuple[int, JSONObject] | None]:
        """See L{IRuleExplainer.near_misses}: lines about others, and those that allow reading alone."""
        reading = evolve(attributes, verb="get")
        for policy in self.policies.all:
            mine = policy.is_about(attributes.user)
            if mine and policy.readonly and policy.matches(reading):
                yield (
                    1,
                    {"why": f"line {policy.line} allows reading alone", "missing": "verb", "policy": policy.shown()},
                )
            elif not mine and policy.matches(attributes):
                yield (
                    3,
                    {
                        "why": f"line {policy.line} allows it, but to others",
                        "missing": "subject",
                        "policy": policy.shown(),
                    },
                )
            else:
                yield None


def make(options: FlagValues, server: AuthorizationContext) -> ABAC:
    """
    Over the file of C{--authorization-policy-file}, which is read again when it changes.

    @raise ValueError: There is none, or it makes no sense.
    """
    path = options["authorization-policy-file"]
    if not path:
        raise ValueError("authorization-mode ABAC's authorization policy file not passed")
    abac = ABAC(Policies())

    def load(contents: Sequence[bytes]) -> Policies:
        return read_policies(path, contents[0])

    def use(policies: Policies) -> None:
        abac.policies = policies
        if policies.unversioned:
            _log.warn(
                "Policy file {path} contained unversioned rules."
                " See docs/admin/authorization.md#abac-mode for ABAC file format details.",
                path=path,
            )

    try:
        use(server.files.watch([path], load, use, "--authorization-policy-file"))
    except OSError as error:
        raise ValueError(f"error reading policy file {path}: {error.strerror}") from error
    return abac
