"""
Audit events: the state of a request at one stage, and its JSON and legacy encodings.

Events are created in the reactor's thread and are immutable. They are encoded in other threads where possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from time import gmtime, strftime
from typing import Any, Final

import orjson
from attrs import define, evolve, field

from ..api.addresses import format_ip, parse_ip
from ..api.decoding import BodyError, decode_json, decode_yaml
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject, UserInfo
from .policy import API_VERSION, LEVELS, REQUEST

#: Maximum length of the user agent in events, in bytes; longer ones are truncated.
MAX_USER_AGENT: Final = 1024
_TRUNCATION_SUFFIX: Final = "...TRUNCATED"
#: The annotation of events whose objects were removed because of their size.
TRUNCATED: Final = "audit.k8s.io/truncated"


class Payload:
    """
    The encoded object of a request or response.

    @ivar data: JSON or YAML.
    @ivar omit_managed_fields: Whether managed fields are removed.
    @ivar yaml: Whether C{data} is YAML.
    """

    __slots__ = ("data", "omit_managed_fields", "yaml")

    def __init__(self, data: bytes, omit_managed_fields: bool = False, yaml: bool = False) -> None:
        self.data = data
        self.omit_managed_fields = omit_managed_fields
        self.yaml = yaml

    def fragment(self) -> Any:
        """Return the object for the event: a value or a JSON fragment; L{None} if it cannot be decoded."""
        try:
            if self.yaml:
                value = decode_yaml(self.data).value
            elif self.omit_managed_fields or b"\n" in self.data or not _is_text(self.data):
                value = decode_json(self.data).value
            else:
                return orjson.Fragment(self.data.removesuffix(b"\n"))
        except BodyError:
            return None
        if self.omit_managed_fields:
            _drop_managed_fields(value)
        return value


@define(eq=False)
class RequestMetadata:
    """
    The facts that are the same in all events of a request.

    @ivar level: The audit level, an index of L{LEVELS}.
    @ivar uri: The request URI as received.
    @ivar user: The authenticated user; L{None} if authentication failed.
    @ivar forwarded: The values of C{X-Forwarded-For} and C{X-Real-Ip}; L{None} for an absent header.
    @ivar peer: The IP address of the peer of the connection.
    @ivar received: The time when the request was received, in seconds since the epoch.
    """

    level: int
    audit_id: str
    uri: bytes
    verb: str
    user: UserInfo | None
    forwarded: tuple[bytes | None, bytes | None]
    peer: str
    user_agent: bytes
    received: float


@define(eq=False)
class Event:
    """
    The audit event of a request at one stage.

    @ivar staged: The time when the request reached this stage, in seconds since the epoch.
    @ivar impersonated: The impersonated user; L{None} without impersonation.
    @ivar constraint: The verb of constrained impersonation that allows it.
    @ivar reference: The C{ObjectReference}, whose fields may be empty; L{None} for non-resource requests.
    @ivar status: The response status without C{metadata}; L{None} before the response.
    """

    metadata: RequestMetadata
    stage: str
    staged: float
    impersonated: UserInfo | None = None
    constraint: str = ""
    reference: JSONObject | None = None
    status: JSONObject | None = None
    request: Payload | None = None
    response: Payload | None = None
    annotations: Mapping[str, str] = field(factory=dict)
    _encoded: bytes | None = field(default=None, init=False)

    def json(self) -> bytes:
        """Return the event as C{audit.k8s.io/v1} JSON; encoded once."""
        if self._encoded is None:
            self._encoded = orjson.dumps(self._as_dict())
        return self._encoded

    def item(self) -> bytes:
        """Return the JSON of the event as an item of an C{EventList}, without kind and apiVersion."""
        return b"{" + self.json()[len(_HEAD) :]

    def without_objects(self) -> Event:
        """Return a copy without objects, with the annotation L{TRUNCATED}."""
        annotations = {**self.annotations, TRUNCATED: "true"}
        return evolve(self, request=None, response=None, annotations=annotations)

    def _as_dict(self) -> JSONObject:
        metadata = self.metadata
        event: JSONObject = {
            "kind": "Event",
            "apiVersion": API_VERSION,
            "level": LEVELS[metadata.level],
            "auditID": metadata.audit_id,
            "stage": self.stage,
            "requestURI": request_uri(metadata.uri),
            "verb": metadata.verb,
            "user": _user(metadata.user),
        }
        if self.impersonated is not None:
            event["impersonatedUser"] = _user(self.impersonated)
            if self.constraint:
                event["authenticationMetadata"] = {"impersonationConstraint": self.constraint}
        sources = source_ips(*metadata.forwarded, metadata.peer)
        if sources:
            event["sourceIPs"] = sources
        if metadata.user_agent:
            event["userAgent"] = shown_user_agent(metadata.user_agent)
        if self.reference is not None:
            event["objectRef"] = {name: value for name, value in self.reference.items() if value}
        if self.status is not None:
            event["responseStatus"] = {"metadata": {}, **self.status}
        if metadata.level >= REQUEST:
            for name, payload in (("requestObject", self.request), ("responseObject", self.response)):
                fragment = payload.fragment() if payload is not None else None
                if fragment is not None:
                    event[name] = fragment
        event["requestReceivedTimestamp"] = micro_time(metadata.received)
        event["stageTimestamp"] = micro_time(self.staged)
        if self.annotations:
            event["annotations"] = dict(sorted(self.annotations.items()))
        return event

    def line(self) -> str:
        """
        Return the event as a line of the legacy format.

        @see: kubernetes/apiserver, C{pkg/audit/format.go}.
        """
        metadata = self.metadata
        name, groups = "<none>", "<none>"
        if metadata.user is not None and metadata.user.name:
            name = metadata.user.name
            if metadata.user.groups:
                groups = _quoted_list(metadata.user.groups)
        as_user, as_groups = "<self>", "<lookup>"
        if self.impersonated is not None:
            as_user = self.impersonated.name
            if self.impersonated.groups:
                as_groups = _quoted_list(self.impersonated.groups)
        sources = source_ips(*metadata.forwarded, metadata.peer)
        reference = self.reference or {}
        fields = {
            "id": metadata.audit_id,
            "stage": self.stage,
            "ip": sources[0] if sources else "<unknown>",
            "method": metadata.verb,
            "user": name,
            "groups": groups,
            "as": as_user,
            "asgroups": as_groups,
            "user-agent": shown_user_agent(metadata.user_agent),
            "namespace": reference.get("namespace") or "<none>",
            "uri": request_uri(metadata.uri),
        }
        code = "<deferred>" if self.status is None else str(self.status.get("code", 0))
        pairs = " ".join(f"{key}={quoted(value)}" for key, value in fields.items())
        return f'{_nano_time(metadata.received)} AUDIT: {pairs} response="{code}"'


_HEAD: Final = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",'


def event_list(items: Iterable[bytes]) -> bytes:
    """
    Return the JSON of an C{EventList}, the request body of webhooks.

    @param items: Results of L{Event.item}.
    """
    return b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[%b]}' % b",".join(items)


def request_uri(uri: bytes) -> str:
    """Return the request URI with the value of C{access_token} masked: tokens must not be logged."""
    text = uri.decode("utf-8", "replace")
    if "access_token=" not in text:
        return text
    path, _, query = text.partition("?")
    fields = ("access_token=<masked>" if one.startswith("access_token=") else one for one in query.split("&"))
    return f"{path}?{'&'.join(fields)}"


def shown_user_agent(agent: bytes) -> str:
    """Return the user agent, truncated to L{MAX_USER_AGENT} bytes."""
    if len(agent) <= MAX_USER_AGENT:
        return agent.decode("utf-8", "replace")
    return agent[:MAX_USER_AGENT].decode("utf-8", "replace") + _TRUNCATION_SUFFIX


def source_ips(forwarded: bytes | None, real: bytes | None, peer: str) -> list[str]:
    """
    Return the source IPs of a request: the addresses that proxies report, then the peer of the connection.

    @param forwarded: The value of C{X-Forwarded-For}; L{None} without it.
    @param real: The value of C{X-Real-Ip}; L{None} without it.
    @param peer: The IP address of the peer; C{""} if unknown.
    @see: kubernetes/apimachinery, C{pkg/util/net/http.go}: C{SourceIPs}.
    """
    if forwarded is None and real is None:
        return [peer] if peer else []
    addresses = []
    for part in (forwarded or b"").split(b","):
        address = _address(part.strip())
        if address:
            addresses.append(address)
    address = _address(real or b"")
    if address and address not in addresses:
        addresses.append(address)
    if peer and addresses[-1:] != [peer]:
        addresses.append(peer)
    return addresses


def peer_ip(host: str) -> str:
    """Return the IP address of a peer; IPv4-mapped IPv6 addresses become IPv4."""
    return _address(host.encode()) or host


def micro_time(seconds: float) -> str:
    """Format a time in seconds since the epoch as a C{MicroTime}."""
    whole, micro = divmod(int(seconds * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{micro:06d}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))


def _nano_time(seconds: float) -> str:
    """Format a time as Go's C{RFC3339Nano}, which omits trailing zeros."""
    return micro_time(seconds)[:-1].rstrip("0").rstrip(".") + "Z"


def _address(text: bytes) -> str:
    address = parse_ip(text.decode("latin-1")) if len(text) <= 64 else None
    return format_ip(address) if address is not None else ""


def _user(user: UserInfo | None) -> JSONObject:
    if user is None:
        return {}
    fields: JSONObject = {}
    if user.name:
        fields["username"] = user.name
    if user.uid:
        fields["uid"] = user.uid
    if user.groups:
        fields["groups"] = user.groups
    if user.extra:
        fields["extra"] = dict(sorted(user.extra.items()))
    return fields


def _quoted_list(values: Iterable[str]) -> str:
    return ",".join(map(quoted, values))


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _drop_managed_fields(value: JSONValue) -> None:
    """Remove the managed fields of an object, a list of objects, or a Table of objects."""
    if not isinstance(value, dict):
        return
    objects = [value, *_dicts(value.get("items")), *(row.get("object") for row in _dicts(value.get("rows")))]
    for obj in objects:
        meta = obj.get("metadata") if isinstance(obj, dict) else None
        if isinstance(meta, dict):
            meta.pop("managedFields", None)


def _dicts(value: JSONValue) -> list[JSONObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
