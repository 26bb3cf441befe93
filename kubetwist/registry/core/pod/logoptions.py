"""
Options of requests for logs.

@see: kubernetes/kubernetes, C{pkg/apis/core/validation}: C{ValidatePodLogOptions}; C{pkg/registry/core/pod}:
    C{LogLocation}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from attrs import frozen

from ....api.errors import APIStatusError, FieldError, forbidden, invalid, not_supported
from ....api.listoptions import parse_int64
from ....api.resource import GroupKind
from ....api.times import parse_time

Query = Mapping[str, Sequence[str]]

_ALL: Final = "All"
_STREAMS: Final = (_ALL, "Stdout", "Stderr")
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"


@frozen
class LogOptions:
    """
    The options of C{pods/log}.

    @ivar insecure: Whether the certificate of the kubelet is not verified.
    @ivar stream: The output stream; L{None} if the request names none.
    """

    container: str = ""
    follow: bool = False
    previous: bool = False
    since_seconds: int | None = None
    since_time: str | None = None
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    insecure: bool = False
    stream: str | None = None

    def check(self, name: str, *, split_streams: bool = False) -> None:
        """
        Validate the options.

        @param name: The name of the pod.
        @param split_streams: Whether the request may name an output stream.
        @raise APIStatusError: The options are invalid (422).
        """
        errors: list[FieldError] = []
        if self.tail_lines is not None and self.tail_lines < 0:
            errors.append(invalid("tailLines", self.tail_lines, "must be greater than or equal to 0"))
        if self.limit_bytes is not None and self.limit_bytes < 1:
            errors.append(invalid("limitBytes", self.limit_bytes, "must be greater than 0"))
        if self.since_seconds is not None:
            if self.since_time is not None:
                # The field path of the reference has no name.
                errors.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
            elif self.since_seconds < 1:
                errors.append(invalid("sinceSeconds", self.since_seconds, "must be greater than 0"))
        if split_streams:
            errors += self._validate_stream()
        elif self.stream is not None:
            errors.append(forbidden("stream", "may not be specified"))
        if errors:
            raise APIStatusError.invalid(GroupKind("", "PodLogOptions"), name, errors)

    def _validate_stream(self) -> list[FieldError]:
        errors: list[FieldError] = []
        stream = _ALL if self.stream is None else self.stream
        if stream not in _STREAMS:
            errors.append(not_supported("stream", stream, _STREAMS))
        if stream != _ALL and self.tail_lines is not None:
            errors.append(forbidden("[]", "`tailLines` and specific `stream` are mutually exclusive for now"))
        return errors

    def kubelet_query(self, *, split_streams: bool = False) -> str:
        """Return the query of the request to the kubelet."""
        parameters: dict[str, object] = {
            "follow": "true" if self.follow else None,
            "limitBytes": self.limit_bytes,
            "previous": "true" if self.previous else None,
            "sinceSeconds": self.since_seconds,
            "sinceTime": self.since_time,
            "stream": (self.stream or _ALL) if split_streams else None,
            "tailLines": self.tail_lines,
            "timestamps": "true" if self.timestamps else None,
        }
        return urlencode({name: value for name, value in parameters.items() if value is not None})


def log_options(query: Query) -> LogOptions:
    """
    Parse the query of a request for a log.

    @raise APIStatusError: A number or time is malformed (400).
    """
    try:
        return LogOptions(
            container=_first(query, "container") or "",
            follow=flag(query, "follow"),
            previous=flag(query, "previous"),
            since_seconds=_number(query, "sinceSeconds"),
            since_time=_time(query, "sinceTime"),
            timestamps=flag(query, "timestamps"),
            tail_lines=_number(query, "tailLines"),
            limit_bytes=_number(query, "limitBytes"),
            insecure=flag(query, "insecureSkipTLSVerifyBackend"),
            stream=_first(query, "stream"),
        )
    except ValueError as error:
        raise APIStatusError.bad_request(str(error)) from None


def flag(query: Query, name: str) -> bool:
    """Return the boolean of a parameter: as in the reference, all texts except a few mean true."""
    value = _first(query, name)
    return value is not None and value.lower() not in ("false", "0")


def _first(query: Query, name: str) -> str | None:
    values = query.get(name)
    return values[0] if values else None


def _number(query: Query, name: str) -> int | None:
    text = _first(query, name)
    return None if text is None else parse_int64(text)


def _time(query: Query, name: str) -> str | None:
    text = _first(query, name)
    if text is None:
        return None
    return _ZERO_TIME if text in ("", "null") else parse_time(text) or _ZERO_TIME
