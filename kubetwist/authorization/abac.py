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

#: Maximum length of a line, in bytes.
MAX_LINE_LENGTH: Final = 64 * 1024

_GROUP: Final = "abac.authorization.kubernetes.io"
_READ_VERBS: Final = ("get", "list", "watch")
_ALLOW: Final = Verdict(Decision.ALLOW)
_NO_MATCH: Final = Verdict(Decision.NO_OPINION, "No policy matched.")

_V0_FIELDS: Final = ("user", "group", "resource", "namespace")
_V1BETA1_FIELDS: Final = ("user", "group", "apiGroup", "resource", "namespace", "nonResourcePath")

_log = Logger()


class InvalidPolicy(ValueError):
    """The policy file or one of its lines is invalid."""


@frozen
class Policy:
    """
    The policy of one line, converted to the newest version.

    @ivar line: The number of the line in the file.
    @ivar user: The user name of the subject. With C{group}, the subject is the user if it is in the group.
    """

    line: int
    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    path: str = ""

    def subject_matches(self, user: UserInfo) -> bool:
        """Return whether a user is a subject of the policy (C{subjectMatches})."""
        if self.user and self.user != user.name:
            return False
        if self.group:
            return self.group in user.groups
        return bool(self.user)

    def matches(self, attributes: AuthorizerAttributes) -> bool:
        """Return whether the policy allows a request of its subject (C{verbMatches}, C{resourceMatches})."""
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

    def summary(self) -> JSONObject:
        """Return the line number and the subject, for explanations."""
        return {"line": self.line, "user": self.user, "group": self.group}

    @property
    def verbs(self) -> list[str]:
        """Return the allowed verbs, as in RBAC rules."""
        return list(_READ_VERBS) if self.readonly else ["*"]


class Policies:
    """
    The policies of a file, indexed by subject.

    @ivar unversioned: The number of lines without C{apiVersion}.
    """

    def __init__(self, policies: Iterable[Policy] = (), unversioned: int = 0) -> None:
        self.all = list(policies)
        self.unversioned = unversioned
        self._by_subject: dict[tuple[str, str], list[Policy]] = {}
        for policy in self.all:
            subject = ("user", policy.user) if policy.user else ("group", policy.group)
            self._by_subject.setdefault(subject, []).append(policy)

    def for_user(self, user: UserInfo) -> Iterable[Policy]:
        """Return the policies whose subject is the user or one of its groups."""
        get = self._by_subject.get
        for policy in get(("user", user.name), ()):
            if policy.subject_matches(user):
                yield policy
        for group in user.groups:
            if group:
                yield from get(("group", group), ())


def read_policies(path: str, content: bytes) -> Policies:
    """
    Decode a policy file: one JSON object per line; blank lines and lines that begin with C{#} are skipped.

    @param path: The path of the file, for error texts.
    @raise InvalidPolicy: A line is invalid; the text contains its number.
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
            content_of_line = text.decode("utf-8", "replace")
            raise InvalidPolicy(
                f"error reading policy file {path}, line {number}: {content_of_line}: {error}"
            ) from None
        policies.append(policy)
        unversioned += not versioned
    return Policies(policies, unversioned)


def _policy(text: bytes, number: int) -> tuple[Policy, bool]:
    """
    Parse one line; return the policy and whether the line has a version.

    @raise ValueError: The line is not a policy.
    """
    obj = orjson.loads(text)
    if not isinstance(obj, dict):
        raise ValueError(f"json: cannot unmarshal {json_type(obj)} into Go value of type v0.Policy")
    version, kind = _string_field(obj, "apiVersion", "TypeMeta"), _string_field(obj, "kind", "TypeMeta")
    if version == f"{_GROUP}/v1beta1" and kind == "Policy":
        spec = obj.get("spec")
        if spec is not None and not isinstance(spec, dict):
            raise ValueError(
                f"json: cannot unmarshal {json_type(spec)} into Go struct field Policy.spec of type v1beta1.PolicySpec"
            )
        return _convert_v1beta1(spec or {}, number), True
    if version and (version, kind) != (f"{_GROUP}/v0", "Policy"):
        raise ValueError(f"no kind {quoted(kind)} is registered for version {quoted(version)}")
    return _convert_v0(obj, number), bool(version and kind)


def _convert_v1beta1(spec: JSONObject, number: int) -> Policy:
    texts = {name: _string_field(spec, name, "PolicySpec.spec") for name in _V1BETA1_FIELDS}
    user, group = texts["user"], texts["group"]
    if "*" in (user, group):
        user, group = "", AUTHENTICATED
    return Policy(
        number,
        user,
        group,
        _readonly_field(spec, "PolicySpec.spec"),
        texts["apiGroup"],
        texts["resource"],
        texts["namespace"],
        texts["nonResourcePath"],
    )


def _convert_v0(obj: JSONObject, number: int) -> Policy:
    """Convert a policy of version C{v0}, in which absent fields match everything and there are no API groups."""
    texts = {name: _string_field(obj, name, "Policy") for name in _V0_FIELDS}
    user, group = texts["user"], texts["group"]
    if not (user or group) or "*" in (user, group):
        user, group = "", AUTHENTICATED
    namespace, resource = texts["namespace"], texts["resource"]
    return Policy(
        number,
        user,
        group,
        _readonly_field(obj, "Policy"),
        "*",
        resource or "*",
        namespace or "*",
        "" if namespace or resource else "*",
    )


def _string_field(obj: JSONObject, name: str, struct: str) -> str:
    value = obj.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(_type_error(value, name, struct, "string"))
    return value


def _readonly_field(obj: JSONObject, struct: str) -> bool:
    value = obj.get("readonly")
    if value is not None and not isinstance(value, bool):
        raise ValueError(_type_error(value, "readonly", struct, "bool"))
    return bool(value)


def _type_error(value: JSONValue, name: str, struct: str, expected: str) -> str:
    return f"json: cannot unmarshal {json_type(value)} into Go struct field {struct}.{name} of type {expected}"


@implementer(IAuthorizer, IRuleResolver, IRuleExplainer)
class ABAC:
    """Allows requests that a policy of the file allows; has no opinion about other requests."""

    name: ClassVar[str] = "ABAC"

    def __init__(self, policies: Policies) -> None:
        self.policies = policies

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{IAuthorizer.authorize}."""
        for policy in self.policies.for_user(attributes.user):
            if policy.matches(attributes):
                return _ALLOW
        return _NO_MATCH

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}."""
        rules: list[JSONObject] = []
        paths: list[JSONObject] = []
        for policy in sorted(self.policies.for_user(user), key=lambda policy: policy.line):
            if policy.namespace not in ("*", namespace):
                continue
            if policy.resource:
                rules.append({"verbs": policy.verbs, "apiGroups": [policy.api_group], "resources": [policy.resource]})
            if policy.path:
                paths.append({"verbs": policy.verbs, "nonResourceURLs": [policy.path]})
        return {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}

    def explain(self, attributes: AuthorizerAttributes) -> JSONObject | None:
        """See L{IRuleExplainer.explain}: the line that allows the request."""
        for policy in self.policies.for_user(attributes.user):
            if policy.matches(attributes):
                return {"policy": policy.summary()}
        return None

    def near_misses(self, attributes: AuthorizerAttributes) -> Iterator[tuple[int, JSONObject] | None]:
        """See L{IRuleExplainer.near_misses}: lines with other subjects, and lines that only allow to read."""
        reading = evolve(attributes, verb="get")
        for policy in self.policies.all:
            subject_matches = policy.subject_matches(attributes.user)
            if subject_matches and policy.readonly and policy.matches(reading):
                yield (
                    1,
                    {"why": f"line {policy.line} only allows to read", "missing": "verb", "policy": policy.summary()},
                )
            elif not subject_matches and policy.matches(attributes):
                yield (
                    3,
                    {
                        "why": f"line {policy.line} allows it, but for another subject",
                        "missing": "subject",
                        "policy": policy.summary(),
                    },
                )
            else:
                yield None


def make(options: FlagValues, server: AuthorizationContext) -> ABAC:
    """
    Return the authorizer of C{--authorization-policy-file}, which is read again when it changes.

    @raise ValueError: The flag is missing, or the file cannot be read or is invalid.
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
