"""EventRateLimit: limits the rate of events per server, namespace, user, or source and object."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError, FieldError, invalid, not_supported
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from ..interfaces import IValidatingAdmission
from .pluginconfig import (
    InvalidConfiguration,
    collect_causes,
    decode_configuration,
    list_field,
    strict_object,
)

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_API_VERSION: Final = "eventratelimit.admission.k8s.io/v1alpha1"
#: The default number of namespaces, users or sources kept in the cache.
_DEFAULT_CACHE_SIZE: Final = 4096
_MAX_INT32: Final = (1 << 31) - 1
_SOURCE: Final = ("component", "host")
_OBJECT: Final = ("kind", "namespace", "name", "uid", "apiVersion")


class _Clock(Protocol):
    def seconds(self) -> float: ...


class TokenBucket:
    """A token bucket that holds up to C{burst} tokens, is full initially, and gains C{rate} tokens per second."""

    __slots__ = ("_burst", "_last", "_rate", "_tokens")

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._last = float(burst), now

    def try_acquire(self, now: float) -> bool:
        """Take a token and return true; return false if there is none."""
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._last) * self._rate)
        self._last = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _server(attributes: AdmissionAttributes) -> str:
    return ""


def _namespace(attributes: AdmissionAttributes) -> str:
    return attributes.namespace


def _user(attributes: AdmissionAttributes) -> str:
    return attributes.user.name


def _source_and_object(attributes: AdmissionAttributes) -> str:
    event: JSONObject = attributes.object or {}
    source, involved = event.get("source") or {}, event.get("involvedObject") or {}
    parts = [source.get(field) for field in _SOURCE] + [involved.get(field) for field in _OBJECT]
    return "".join(part or "" for part in parts)


_KEYS: Final[dict[str, Callable[[AdmissionAttributes], str]]] = {
    "Server": _server,
    "Namespace": _namespace,
    "User": _user,
    "SourceAndObject": _source_and_object,
}


class Limit:
    """
    One limit, with a token bucket for each key.

    @ivar kind: The type of the keys: C{Server}, C{Namespace}, C{User} or C{SourceAndObject}.
    """

    def __init__(self, kind: str, rate: int, burst: int, cache_size: int, clock: _Clock) -> None:
        """
        @param kind: The type of the keys.
        @param rate: Number of events per second.
        @param burst: Maximum number of events that are admitted immediately one after the other.
        @param cache_size: Maximum number of token buckets; the least recently used one is evicted.
        @param clock: The reactor.
        """
        self.kind = kind
        self._rate, self._burst, self._cache_size, self._clock = rate, burst, cache_size, clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def rejection_reason(self, attributes: AdmissionAttributes) -> str:
        """Return why this event exceeds the limit; C{""} if it does not."""
        key = _KEYS[self.kind](attributes)
        now = self._clock.seconds()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(self._rate, self._burst, now)
            if len(self._buckets) > self._cache_size:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return "" if bucket.try_acquire(now) else f"limit reached on type {self.kind} for key {key}"


@implementer(IValidatingAdmission)
@frozen
class EventRateLimit:
    """See kubernetes, C{plugin/pkg/admission/eventratelimit/admission.go}."""

    name: ClassVar[str] = "EventRateLimit"
    resources: ClassVar[tuple[str, ...]] = ("events",)
    limits: Sequence[Limit] = ()

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> EventRateLimit:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        if configuration is None:
            raise InvalidConfiguration("EventRateLimit needs a configuration: limits must not be empty")
        decoded = decode_configuration(configuration, "Configuration", (_API_VERSION,), ("limits",))
        with collect_causes() as causes:
            limits = [
                _limit(one, f"limits[{index}]", server.reactor, causes)
                for index, one in enumerate(list_field(decoded.get("limits"), "limits"))
            ]
            if not limits:
                causes.append(invalid("limits", decoded.get("limits"), "must not be empty"))
        return cls(limits)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: each limit counts an event, even if another limit rejects it."""
        if attributes.dry_run:
            return
        reasons = [reason for limit in self.limits if (reason := limit.rejection_reason(attributes))]
        if reasons:
            raise APIStatusError(429, "TooManyRequests", f"Too many requests: {reasons[-1]}")


def _limit(value: JSONValue, path: str, clock: _Clock, causes: list[FieldError]) -> Limit:
    limit = strict_object(value, ("type", "qps", "burst", "cacheSize"), path)
    kind = limit.get("type") or ""
    if kind not in _KEYS:
        causes.append(not_supported(f"{path}.type", kind, _KEYS))
    numbers = {field: _number(limit.get(field), f"{path}.{field}") for field in ("burst", "qps", "cacheSize")}
    for field in ("burst", "qps"):
        if numbers[field] <= 0:
            causes.append(invalid(f"{path}.{field}", numbers[field], "must be positive"))
    if kind != "Server" and numbers["cacheSize"] < 0:
        causes.append(invalid(f"{path}.cacheSize", numbers["cacheSize"], "must not be negative"))
    return Limit(kind, numbers["qps"], numbers["burst"], numbers["cacheSize"] or _DEFAULT_CACHE_SIZE, clock)


def _number(value: JSONValue, path: str) -> int:
    if value is None:
        return 0
    if type(value) is not int or abs(value) > _MAX_INT32:
        raise InvalidConfiguration(f"{path}: expected a number of 32 bits")
    return value
