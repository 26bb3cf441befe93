"""The JSON of etcd's gateway as values: numbers are texts, bytes are in base64, and empty fields are omitted."""

from __future__ import annotations

from binascii import a2b_base64
from typing import Any

from txaioetcd import Header, Range

from ._errors import ProtocolError
from ._values import EtcdKeyValue, LeaseTimeToLive, WatchEvent, WatchResponse

_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)


def _octets(found: dict[str, Any], name: str) -> bytes | None:
    text = found.get(name)
    return a2b_base64(text, strict_mode=True) if text else None


def _integer(found: dict[str, Any], name: str) -> int | None:
    value = found.get(name)
    return None if value is None else int(value)


def _parse_key_value(found: dict[str, Any], make: type[EtcdKeyValue] = EtcdKeyValue) -> Any:
    key, modified = _octets(found, "key"), _integer(found, "mod_revision")
    if not key or not modified:
        raise ProtocolError("etcd sent a value without a key, or without a revision")
    return make(
        key,
        _octets(found, "value"),
        _integer(found, "version"),
        _integer(found, "create_revision"),
        modified,
        _integer(found, "lease"),
    )


def parse_range(found: dict[str, Any]) -> Range:
    """
    Parse the response to C{OpGet}.

    @raise ProtocolError: It is malformed.
    """
    try:
        values = [_parse_key_value(one) for one in found.get("kvs", ())]
        return Range(values, Header._parse(found["header"]), _integer(found, "count") or 0)
    except _UNREADABLE as error:
        raise ProtocolError(f"etcd sent a range that cannot be read: {type(error).__name__}") from None


def parse_time_to_live(found: dict[str, Any]) -> LeaseTimeToLive:
    """
    Parse the rest of a lease, or its renewal.

    @raise ProtocolError: It is malformed.
    """
    try:
        keys = [a2b_base64(key, strict_mode=True) for key in found.get("keys", ())]
        return LeaseTimeToLive(Header._parse(found["header"]), _integer(found, "TTL") or 0, keys)
    except _UNREADABLE as error:
        raise ProtocolError(f"etcd sent a lease that cannot be read: {type(error).__name__}") from None


def parse_watch(found: dict[str, Any]) -> WatchResponse:
    """
    Parse a message of a watch.

    @raise ProtocolError: It is malformed.
    """
    try:
        return WatchResponse(
            [_parse_event(event) for event in found.get("events", ())],
            canceled=bool(found.get("canceled")),
            partial=bool(found.get("fragment")),
            compacted=_integer(found, "compact_revision") or 0,
            reason=str(found.get("cancel_reason") or ""),
        )
    except _UNREADABLE as error:
        raise ProtocolError(f"etcd sent an event that cannot be read: {type(error).__name__}") from None


def _parse_event(found: dict[str, Any]) -> WatchEvent:
    event: WatchEvent = _parse_key_value(found["kv"], WatchEvent)
    kind = found.get("type", "PUT")
    if kind == "DELETE":
        event.deleted = True
    elif kind != "PUT":
        raise ProtocolError(f"etcd sent an event of kind {kind!r}")
    previous = found.get("prev_kv")
    if previous is not None:
        event.previous = _parse_key_value(previous)
    return event
