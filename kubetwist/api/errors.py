"""
Errors of the API: C{Status} objects with the reference's codes, reasons, details and messages.

Storage has separate errors (L{kubetwist.storage.errors}), which only the registry converts to these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen
from attrs import field as attribute

from ._gosyntax import shown_in_go
from .featuregates import FeatureGates, Release
from .go.quote import quoted
from .go.syntax import float_text
from .jsontypes import JSONObject, JSONValue
from .names import Reworded
from .renamed import renamed_names
from .resource import GroupKind, GroupResource

#: The maximum number of causes in a Status, and of characters in them; at least one cause is always included.
MAX_FIELD_ERRORS: Final = 1000
MAX_FIELD_ERRORS_LENGTH: Final = 1024 * 1024
#: Numbers from which on Go writes floats with an exponent.
_EXPONENT_FROM: Final = 1e21
_UNSAFE: Final = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


#: The first release whose messages show bad values in JSON; earlier ones show lists, maps and structs in Go syntax.
_VALUES_IN_JSON: Final = (1, 34)


@frozen
class FieldError:
    """
    An error in one field, as the newest release reports it.

    L{in_release} returns the error of another release, which the rule adds by L{since}, L{before} and C{go_syntax}.

    @ivar reason: A C{CauseType} such as C{FieldValueInvalid}.
    @ivar go_syntax: Returns the message with the value in Go syntax, for a release that has it; L{None} for values that
        are shown alike.
    @ivar first: The first release with this error; L{None} if all have it.
    @ivar earlier: The error of releases before C{first}; L{None} if they have none.
    @ivar last: The first release without this error; L{None} if the newest one has it.
    @ivar detail: The end of the message, as far as the rule chose it.
    """

    reason: str
    message: str
    field: str
    go_syntax: Callable[[Release], str] | None = attribute(default=None, eq=False, repr=False)
    first: Release | None = attribute(default=None, eq=False, repr=False)
    earlier: FieldError | None = attribute(default=None, eq=False, repr=False)
    last: Release | None = attribute(default=None, eq=False, repr=False)
    detail: str = attribute(default="", eq=False, repr=False)

    def since(self, major: int, minor: int, earlier: FieldError | None = None) -> FieldError:
        """
        Return this error, with another one, or none, in releases before.

        @param earlier: The error of these releases.
        """
        return evolve(self, first=(major, minor), earlier=earlier)

    def before(self, major: int, minor: int) -> FieldError:
        """Return this error as one that only releases before have."""
        return evolve(self, last=min(self.last or (major, minor), (major, minor)))

    def reworded(self, major: int, minor: int, detail: str) -> FieldError:
        """
        Return this error, with another detail in the message of releases before.

        @param detail: The detail of these releases.
        """
        end, go_syntax = f": {self.detail}" if self.detail else "", self.go_syntax

        def reword(message: str) -> str:
            return f"{message.removesuffix(end)}: {detail}"

        earlier = evolve(
            self,
            message=reword(self.message),
            detail=detail,
            go_syntax=None if go_syntax is None else lambda release: reword(go_syntax(release)),
        )
        return self.since(major, minor, earlier)

    @property
    def differs(self) -> bool:
        """Return whether there are releases with another error."""
        return self.go_syntax is not None or self.first is not None or self.last is not None

    def in_release(self, features: FeatureGates) -> FieldError | None:
        """Return the error of a release; L{None} if it has none."""
        if self.last is not None and features.since(*self.last):
            return None
        if self.first is not None and not features.since(*self.first):
            return None if self.earlier is None else self.earlier.in_release(features)
        if self.go_syntax is not None and not features.since(*_VALUES_IN_JSON):
            return self._settled(self.go_syntax(features.release))
        return self._settled(self.message) if self.differs else self

    def _settled(self, message: str) -> FieldError:
        """Return this error for one release."""
        return evolve(self, message=message, go_syntax=None, first=None, earlier=None, last=None)

    def as_dict(self) -> dict[str, str]:
        """Return the entry of C{details.causes}."""
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@frozen
class RatchetedError(FieldError):
    """An error in a field that was already there before the write: the client only gets a warning."""

    @classmethod
    def of(cls, error: FieldError) -> RatchetedError:
        """Return an error as one that was already there."""
        earlier = None if error.earlier is None else cls.of(error.earlier)
        return cls(
            error.reason, error.message, error.field, error.go_syntax, error.first, earlier, error.last, error.detail
        )


class ReportedError(Exception):
    """
    A failure below the API whose text is logged and sent to clients, with code 500 and reason C{Unknown}.

    Other exceptions that are not L{APIStatusError} are bugs: their text is not sent.
    """

    @property
    def client_message(self) -> str:
        """Return the text for clients."""
        return str(self)


class APIStatusError(Exception):
    """
    A request failure that is reported to the client.

    @ivar code: The HTTP status.
    @ivar reason: A C{StatusReason}; C{""} is omitted in the response, as in the reference.
    @ivar message: The text for the client.
    @ivar details: The C{details} of the Status, or L{None}.
    @ivar retry_after: Seconds for the C{Retry-After} header, or L{None}.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: JSONObject | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        #: The C{metadata} of the Status: the C{continue} token to continue an expired list.
        self.list_meta: JSONObject = {}
        self._in_release: Callable[[FeatureGates], APIStatusError] | None = None

    def since(self, major: int, minor: int, earlier: APIStatusError) -> APIStatusError:
        """Return this error, which is answered from a release on; releases before answer C{earlier}."""
        self._in_release = lambda features: self if features.since(major, minor) else earlier.in_release(features)
        return self

    def in_release(self, features: FeatureGates) -> APIStatusError:
        """Return the error that a release answers."""
        return self if self._in_release is None else self._in_release(features)

    def status(self) -> JSONObject:
        """Return the C{Status} object for the response."""
        status: JSONObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @classmethod
    def not_found(cls, resource: GroupResource, name: str) -> APIStatusError:
        """Return the error for an object that does not exist."""
        return cls(404, "NotFound", f"{resource} {quoted(name)} not found", named(resource, name))

    @classmethod
    def already_exists(cls, resource: GroupResource, name: str) -> APIStatusError:
        """Return the error for an object that already exists."""
        return cls(409, "AlreadyExists", f"{resource} {quoted(name)} already exists", named(resource, name))

    @classmethod
    def conflict(cls, resource: GroupResource, name: str, why: str) -> APIStatusError:
        """Return the error for a failed precondition or a concurrent change."""
        return cls(
            409,
            "Conflict",
            f"Operation cannot be fulfilled on {resource} {quoted(name)}: {why}",
            named(resource, name),
        )

    @classmethod
    def modified(cls, resource: GroupResource, name: str) -> APIStatusError:
        """Return the error for an outdated C{resourceVersion} in a write."""
        return cls.conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )

    @classmethod
    def invalid(cls, kind: GroupKind, name: str, causes: Sequence[FieldError]) -> APIStatusError:
        """
        Return the error for an object that fails validation.

        As in apimachinery's C{NewInvalid}, duplicates are removed in the message, not in the causes. The number of
        causes is limited, because each one is longer than its field and is included twice.
        """
        reported, omitted = _bounded(causes)
        details: JSONObject = {"name": name} if name else {}
        if kind.group:
            details["group"] = kind.group
        if kind.kind:
            details["kind"] = kind.kind
        if reported:
            details["causes"] = [cause.as_dict() for cause in reported]
        more = f" and {omitted} more errors" if omitted else ""
        error = cls(422, "Invalid", f"{kind} {quoted(name)} is invalid{aggregate(reported)}{more}", details)
        if any(cause.differs for cause in causes):
            error._in_release = lambda features: cls.invalid(kind, name, errors_in_release(causes, features))
        return error

    @classmethod
    def bad_request(cls, message: str) -> APIStatusError:
        """Return the error for an invalid request."""
        return cls(400, "BadRequest", message)

    @classmethod
    def unauthorized(cls, message: str = "Unauthorized") -> APIStatusError:
        """Return the error for a request without valid credentials."""
        return cls(401, "Unauthorized", message)

    @classmethod
    def forbidden(cls, resource: GroupResource, name: str, why: str) -> APIStatusError:
        """Return the error for an action that the client is not allowed to perform."""
        if not resource.resource:
            message = f"forbidden: {why}"
        else:
            message = f"{resource} {quoted(name)} is forbidden: {why}" if name else f"{resource} is forbidden: {why}"
        return cls(403, "Forbidden", message, named(resource, name))

    @classmethod
    def method_not_supported(cls, resource: GroupResource, action: str) -> APIStatusError:
        """Return the error for a verb that the resource does not support."""
        details = named(resource, "")
        message = f'{action} is not supported on resources of kind "{resource}"'
        return cls(405, "MethodNotAllowed", message, details)

    @classmethod
    def method_not_allowed(cls) -> APIStatusError:
        """Return the error for an HTTP method that the path does not support."""
        return cls(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})

    @classmethod
    def path_not_found(cls) -> APIStatusError:
        """Return the error for an unknown resource or version of a served group."""
        return cls(404, "NotFound", "the server could not find the requested resource", {})

    @classmethod
    def not_acceptable(cls, accepted: Iterable[str]) -> APIStatusError:
        """Return the error for a client that accepts no supported media type."""
        return cls(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(accepted)}")

    @classmethod
    def unsupported_media_type(cls, accepted: Iterable[str]) -> APIStatusError:
        """Return the error for a body in an unsupported media type."""
        return cls(
            415,
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}",
        )

    @classmethod
    def expired(cls, message: str) -> APIStatusError:
        """Return the error for an expired revision or continue token."""
        return cls(410, "Expired", message)

    @classmethod
    def too_large(cls, message: str) -> APIStatusError:
        """Return the error for a body or a patch over the size limit."""
        return cls(413, "RequestEntityTooLarge", message)

    @classmethod
    def too_many_requests(cls, message: str, retry_after: int) -> APIStatusError:
        """Return the error for a request to be retried later."""
        details = {"retryAfterSeconds": retry_after} if retry_after else {}
        return cls(429, "TooManyRequests", message, details, retry_after or None)

    @classmethod
    def internal(cls, message: str) -> APIStatusError:
        """Return an internal error whose text is shown to the client."""
        return cls(
            500,
            "InternalError",
            f"Internal error occurred: {message}",
            {"causes": [{"message": message}]},
        )

    @classmethod
    def unknown(cls, message: str) -> APIStatusError:
        """Return the error for a plain exception, which the reference answers as a 500 without a reason."""
        return cls(500, "", message)

    @classmethod
    def service_unavailable(cls, message: str) -> APIStatusError:
        """Return the error for a server or backend that is temporarily unavailable."""
        return cls(503, "ServiceUnavailable", message)

    @classmethod
    def timeout(cls, message: str, retry_after: int = 0) -> APIStatusError:
        """Return the error for a request that timed out."""
        details = {"retryAfterSeconds": retry_after} if retry_after else {}
        return cls(504, "Timeout", f"Timeout: {message}", details, retry_after or None)


def named(resource: GroupResource, name: str) -> JSONObject:
    """Return the C{details} that name an object; as in the reference, their C{kind} is the resource."""
    details = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    if resource.resource:
        details["kind"] = resource.resource
    return details


def _bounded(causes: Sequence[FieldError]) -> tuple[Sequence[FieldError], int]:
    """Return the first causes up to the limits, and the number of omitted causes."""
    size = 0
    for number, cause in enumerate(causes):
        size += len(cause.message) + len(cause.field)
        if number and (number >= MAX_FIELD_ERRORS or size > MAX_FIELD_ERRORS_LENGTH):
            return causes[:number], len(causes) - number
    return causes, 0


def aggregate(causes: Sequence[FieldError]) -> str:
    """Return causes as the end of a message: without duplicates, in brackets if there are several."""
    texts = list(dict.fromkeys(str(cause) for cause in causes))
    if not texts:
        return ""
    return ": " + (texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def errors_in_release(errors: Sequence[FieldError], features: FeatureGates) -> list[FieldError]:
    """Return the errors that a release reports."""
    found = (error.in_release(features) for error in errors)
    return [error for error in found if error is not None]


## Constructors of field errors, as in apimachinery's util/validation/field.


def valued(
    reason: str, title: str, field: str, value: JSONValue, detail: str = "", go_type: str = "", formatted: str = ""
) -> FieldError:
    """
    Return an error whose message contains a value.

    @param title: The beginning of the message.
    @param detail: The end of the message.
    @param go_type: The Go type of the value, see L{shown_in_go}.
    @param formatted: The value as JSON, if L{shown} formats it in another way.
    """
    if detail.__class__ is Reworded:
        assert isinstance(detail, Reworded)
        error = valued(reason, title, field, value, str(detail), go_type, formatted)
        return error.reworded(*detail.first, detail.earlier)
    end = f": {detail}" if detail else ""
    message = f"{title}: {formatted or shown(value)}{end}"
    if not go_type and value.__class__ in _SHOWN_ALIKE:
        return FieldError(reason, message, field, detail=detail)

    def go_syntax(release: Release) -> str:
        return f"{title}: {shown_in_go(value, go_type, release)}{end}"

    return FieldError(reason, message, field, go_syntax, detail=detail)


#: Classes of values that all releases show alike, if they have the usual Go type.
_SHOWN_ALIKE: Final = frozenset((str, int, bool, float))


def shown(value: JSONValue) -> str:
    """
    Return a value as the reference prints it in an Invalid message: strings quoted, other values as Go's JSON, except
    floats.
    """
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return float_text(value)
    return go_json(value, sort_keys=True)


def _whole(value: JSONValue) -> JSONValue:
    """Return a value with whole floats converted to integers, as Go writes them."""
    if value.__class__ is float:
        return int(value) if value.is_integer() and abs(value) < _EXPONENT_FROM else value
    if value.__class__ is dict:
        return {name: _whole(item) for name, item in value.items()}
    return [*map(_whole, value)] if value.__class__ is list else value


def go_json(value: JSONValue, *, sort_keys: bool = False, raw: bool = False) -> str:
    """
    Return JSON as Go writes it, with HTML characters escaped.

    @param sort_keys: Sort the keys, as for maps; fields of structs keep their order.
    @param raw: Whether the value has, or is, a C{RawExtension}, whose numbers keep their text.
    """
    text = json.dumps(value if raw else _whole(value), separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)
    return text.translate(_UNSAFE)


def clear_frames(error: BaseException) -> None:
    """
    Drop the tracebacks of a handled exception, and its causes.

    Frames reference the objects of their functions. Twisted's frames that pass on results of Deferreds reference the
    exception as well, so that all of it would be kept until the garbage collector runs.
    """
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None:
            waiting += (one.__cause__, one.__context__)
            one.__traceback__ = one.__cause__ = one.__context__ = None


def required(field: str, detail: str = "") -> FieldError:
    """Return the error for a missing required value."""
    return FieldError("FieldValueRequired", f"Required value{': ' + detail if detail else ''}", field, detail=detail)


def internal(field: str, detail: str) -> FieldError:
    """Return the error for a value that the server failed to validate."""
    return FieldError("InternalError", f"Internal error: {detail}", field)


def invalid(field: str, value: JSONValue, detail: str, go_type: str = "") -> FieldError:
    """
    Return the error for an invalid value.

    @param go_type: The Go type of the value, see L{shown_in_go}.
    """
    return valued("FieldValueInvalid", "Invalid value", field, value, detail, go_type)


def duplicate(field: str, value: JSONValue, go_type: str = "") -> FieldError:
    """
    Return the error for a duplicate value.

    @param go_type: The Go type of the value, see L{shown_in_go}.
    """
    return valued("FieldValueDuplicate", "Duplicate value", field, value, go_type=go_type)


def forbidden(field: str, detail: str) -> FieldError:
    """Return the error for a forbidden value."""
    return FieldError("FieldValueForbidden", f"Forbidden: {detail}", field, detail=detail)


def not_supported(field: str, value: JSONValue, supported: Iterable[str], go_type: str = "") -> FieldError:
    """
    Return the error for a value that is not supported.

    @param go_type: The Go type of the value, see L{shown_in_go}.
    """
    choice = ", ".join(shown(one) for one in sorted(supported))
    detail = f"supported values: {choice}" if choice else ""
    return valued("FieldValueNotSupported", "Unsupported value", field, value, detail, go_type)


def not_found(field: str, value: JSONValue) -> FieldError:
    """Return the error for a reference to a missing object."""
    return valued("FieldValueNotFound", "Not found", field, value)


def counted(number: int, units: str) -> str:
    """Return a count with its noun: C{1 byte}, C{2 bytes}."""
    return f"{number} {units.removesuffix('s') if number == 1 else units}"


def too_long(field: str, limit: int, unit: str = "bytes", *, earlier: str = "must have at most {} bytes") -> FieldError:
    """
    Return the error for a value that is too long.

    @param earlier: The detail before 1.32, in which the limit is inserted: C{field.TooLong} by default.
    """
    detail = f"may not be more than {counted(limit, unit)}"
    error = FieldError("FieldValueTooLong", f"Too long: {detail}", field, detail=detail)
    return error.reworded(1, 32, earlier.format(limit))


#: The detail of C{field.TooLongMaxLength} before 1.32, for L{too_long}.
MAX_LENGTH: Final = "may not be longer than {}"


def too_many(field: str, actual: int, limit: int) -> FieldError:
    """Return the error for a list with too many items."""
    return FieldError("FieldValueTooMany", f"Too many: {actual}: must have at most {counted(limit, 'items')}", field)


def type_invalid(field: str, value: JSONValue, detail: str) -> FieldError:
    """Return the error for a value of the wrong type."""
    return valued("FieldValueTypeInvalid", "Invalid value", field, value, detail)


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"Cause": "FieldError"})
