"""
Propagation of trace context in header fields: C{traceparent}, C{tracestate} and C{baggage}.

Malformed and excessively long fields are ignored.

@see: W3C, C{Trace Context} and C{Baggage}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

TRACEPARENT: Final = b"traceparent"
TRACESTATE: Final = b"tracestate"
BAGGAGE: Final = b"baggage"

SAMPLED: Final = 1

#: Maximum size in bytes, and maximum number of entries, of fields that are parsed.
_MAX_STATE_BYTES: Final = 32 * 513
_MAX_BAGGAGE_BYTES: Final = 8192
_MAX_STATE_ENTRIES: Final = 32
_MAX_BAGGAGE_ENTRIES: Final = 64
#: Maximum size in bytes of a propagated state, and size of entries that are dropped first.
_MAX_PROPAGATED_STATE_BYTES: Final = 512
_LONG_ENTRY_BYTES: Final = 128

_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_KEY: Final = rb"[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}"
_ENTRY: Final = re.compile(rb"(" + _KEY + rb")=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_OCTETS: Final = rb"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*"
_PAIR: Final = _TOKEN + rb"[ \t]*=[ \t]*" + _OCTETS
_MEMBER: Final = re.compile(_PAIR + rb"(?:[ \t]*;[ \t]*(?:" + _PAIR + rb"|" + _TOKEN + rb"))*")


@frozen
class RemoteSpanContext:
    """
    The span of the caller.

    @ivar state: The value of C{tracestate}, which is propagated unchanged.
    """

    trace_id: int
    span_id: int
    sampled: bool
    state: bytes = b""


def extract_span_context(fields: Mapping[bytes, Sequence[bytes]]) -> RemoteSpanContext | None:
    """
    Extract the span of the caller from header fields.

    @param fields: Header fields by lower-case name.
    @return: L{None} without a valid C{traceparent}.
    """
    values = fields.get(TRACEPARENT)
    if values is None or len(values) != 1:
        return None
    match = _PARENT.fullmatch(values[0].strip(b" \t"))
    if match is None:
        return None
    version, trace, span, flags, further = match.groups()
    trace_id, span_id = int(trace, 16), int(span, 16)
    # Later versions may have more parts; version 00 may not.
    if version == b"ff" or (further is not None and version == b"00") or not trace_id or not span_id:
        return None
    return RemoteSpanContext(trace_id, span_id, bool(int(flags, 16) & SAMPLED), _state(fields.get(TRACESTATE, ())))


def _state(values: Sequence[bytes]) -> bytes:
    """Return the part of C{tracestate} that is propagated."""
    if not values or sum(map(len, values)) > _MAX_STATE_BYTES:
        return b""
    entries = [entry for one in values for part in one.split(b",") if (entry := part.strip(b" \t"))]
    if len(entries) > _MAX_STATE_ENTRIES:
        return b""
    keys = set()
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None or match[1] in keys:
            return b""
        keys.add(match[1])
    if sum(map(len, entries)) + len(entries) > _MAX_PROPAGATED_STATE_BYTES:
        entries = [entry for entry in entries if len(entry) <= _LONG_ENTRY_BYTES]
        while sum(map(len, entries)) + len(entries) > _MAX_PROPAGATED_STATE_BYTES:
            entries.pop()
    return b",".join(entries)


def extract_baggage(fields: Mapping[bytes, Sequence[bytes]]) -> bytes:
    """Return the baggage of the caller, or C{b""} if it is invalid."""
    values = fields.get(BAGGAGE)
    if values is None or sum(map(len, values)) + len(values) > _MAX_BAGGAGE_BYTES:
        return b""
    members = [part.strip(b" \t") for one in values for part in one.split(b",")]
    if len(members) > _MAX_BAGGAGE_ENTRIES or not all(map(_MEMBER.fullmatch, members)):
        return b""
    return b",".join(members)


def traceparent(trace_id: int, span_id: int, sampled: bool) -> bytes:
    """Return the value of C{traceparent} for an outgoing call."""
    return b"00-%032x-%016x-%02x" % (trace_id, span_id, SAMPLED if sampled else 0)
