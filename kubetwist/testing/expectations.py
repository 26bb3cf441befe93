"""Expected requests: their comparison with the recorded ones, and the differences as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, fields_dict, frozen

from ..api.jsontypes import JSONValue

if TYPE_CHECKING:
    from .requests import RecordedRequest, RecordedRequests, RequestLog

#: The verbs that C{verbs="write"} stands for.
WRITE_VERBS: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
#: Maximum number of requests that are compared, the newest ones, and of lines that are shown.
MAX_COMPARED: Final = 1000
MAX_SHOWN: Final = 60
_MAX_DIFFERENCES: Final = 20
_MAX_VALUE: Final = 120


@frozen
class ExpectedRequest:
    """
    A request that a test expects; fields that are L{None} match any value.

    @ivar verb: C{"create"}, C{"update"}, C{"patch"}, C{"delete"}, C{"get"}, C{"list"}, C{"watch"}...
    @ivar resource: C{"pods"}, C{"pods/status"}, or with the group C{"deployments.apps"}, C{"deployments.apps/scale"}.
    @ivar user: The user name, also of an impersonated user.
    @ivar body: The fields that the body has, perhaps among further ones; lists are compared completely.
    @ivar code: The status of the response.
    @ivar times: The number of such requests.
    """

    verb: str
    resource: str
    name: str | None = None
    namespace: str | None = None
    user: str | None = None
    body: JSONValue = field(default=None, eq=False)
    code: int | None = None
    times: int = 1

    @classmethod
    def of(cls, value: ExpectedRequest | Mapping[str, Any] | str) -> ExpectedRequest:
        """
        Return what a value expects.

        @param value: The same, its fields by their names, or text: C{"create pods"}, C{"patch pods/status web-0"}.
        @raise ValueError: The text or a field is unknown.
        """
        if isinstance(value, ExpectedRequest):
            return value
        if isinstance(value, str):
            words = value.split()
            if not 2 <= len(words) <= 3:
                raise ValueError(f"{value!r} is no request: use 'VERB RESOURCE' or 'VERB RESOURCE NAME'")
            return cls(words[0], words[1], words[2] if words[2:] else None)
        known = fields_dict(cls)
        unknown = [name for name in value if name not in known]
        if unknown or not {"verb", "resource"} <= value.keys():
            raise ValueError(
                f"an expected request has verb and resource, and perhaps {', '.join([*known][2:])}: {value}"
            )
        return cls(**value)

    @property
    def text(self) -> str:
        """Return the request as a line."""
        text = f"{self.verb} {self.resource}"
        if self.name is not None:
            text += f" {self.name if self.namespace is None else f'{self.namespace}/{self.name}'}"
        elif self.namespace is not None:
            text += f" in {self.namespace}"
        if self.user is not None:
            text += f" by {self.user}"
        if self.code is not None:
            text += f" -> {self.code}"
        return text

    def is_about(self, recorded: RecordedRequest) -> bool:
        """Return whether verb, resource and subresource match."""
        resource, _, subresource = self.resource.partition("/")
        plural, dot, group = resource.partition(".")
        return (
            self.verb == recorded.verb
            and plural == recorded.resource
            and subresource == recorded.subresource
            and (not dot or group == recorded.group)
        )

    def differences(self, recorded: RecordedRequest) -> list[str]:
        """Return the differences to a request about the same resource: empty if it is expected."""
        found = []
        for name, expected, actual in (
            ("name", self.name, recorded.name or _body_name(recorded)),
            ("namespace", self.namespace, recorded.namespace),
            ("user", self.user, recorded.user),
            ("code", self.code, recorded.code),
        ):
            if expected is not None and expected != actual:
                found.append(f"{name}: expected {_shown(expected)}, was {_shown(actual)}")
        if self.body is not None:
            try:
                body = decode_body(recorded)
            except ValueError as error:
                return [*found, f"body: {error}"]
            found += body_differences(self.body, body)
        return found


def decode_body(recorded: RecordedRequest) -> JSONValue:
    """
    Return the body of a request, decoded from JSON or YAML.

    @raise ValueError: It is something else.
    """
    import yaml

    if not recorded.body:
        return None
    if recorded.body.startswith(b"k8s\0"):
        raise ValueError("it is protobuf, which is not compared")
    try:
        if "yaml" in recorded.content_type:
            return yaml.safe_load(recorded.body)
        return recorded.json()
    except (ValueError, yaml.YAMLError):
        raise ValueError(f"{recorded.content_type or 'it'} is neither JSON nor YAML") from None


def _body_name(recorded: RecordedRequest) -> str:
    """Return the name in the body of a creation."""
    if recorded.verb != "create":
        return ""
    try:
        body = decode_body(recorded)
    except ValueError:
        return ""
    meta = body.get("metadata") if isinstance(body, dict) else None
    return str(meta.get("name") or "") if isinstance(meta, dict) else ""


def body_differences(expected: JSONValue, actual: JSONValue, path: str = "") -> list[str]:
    """
    Return how a body differs from the fields that are expected in it, one line for each field.

    @param expected: Fields that the body has, perhaps among further ones; other values are compared with C{==}.
    @param actual: The body.
    @param path: The path of the values, for the lines.
    """
    return list(_differences(expected, actual, path))


def _differences(expected: JSONValue, actual: JSONValue, path: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name, value in expected.items():
            place = _join(path, str(name))
            if name not in actual:
                yield f"{place}: expected {_shown(value)}, is missing"
            else:
                yield from _differences(value, actual[name], place)
    elif isinstance(expected, list | tuple) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path or 'body'}: expected {len(expected)} items, was {len(actual)} items"
        for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif not expected == actual or isinstance(expected, bool) != isinstance(actual, bool):  # noqa: SIM201 - unittest.mock.ANY
        yield f"{path or 'body'}: expected {_shown(expected)}, was {_shown(actual)}"


def _join(path: str, name: str) -> str:
    if name.replace("-", "").replace("_", "").isalnum():
        return f"{path}.{name}" if path else name
    return f"{path}[{name!r}]"


def _shown(value: JSONValue) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."


@frozen
class Expectation:
    """
    All that a test expects.

    @ivar expected: One entry for each request.
    @ivar ordered: Whether requests have to arrive in this order.
    @ivar exact: Whether there must be no other requests.
    """

    expected: tuple[ExpectedRequest, ...]
    ordered: bool
    exact: bool

    @classmethod
    def of(
        cls, expected: Iterable[ExpectedRequest | Mapping[str, Any] | str], ordered: bool, exact: bool
    ) -> Expectation:
        """
        Return the expectation, with one entry for each of several requests.

        @raise ValueError: A request is malformed.
        """
        entries: list[ExpectedRequest] = []
        for one in map(ExpectedRequest.of, expected):
            if one.times < 0:
                raise ValueError("times must not be negative")
            entries += [evolve(one, times=1)] * one.times
        return cls(tuple(entries), ordered, exact)

    def compare(self, requests: Sequence[RecordedRequest]) -> str:
        """Return how requests differ from what is expected, as text; C{""} if they do not."""
        seen = requests[-MAX_COMPARED:]
        matches = [
            [one.is_about(recorded) and not one.differences(recorded) for recorded in seen] for one in self.expected
        ]
        pairs = (_in_order if self.ordered else _in_any_order)(matches, len(seen))
        missing = [index for index in range(len(self.expected)) if index not in pairs]
        matched = set(pairs.values())
        unmatched = [index for index in range(len(seen)) if index not in matched]
        if not missing and not (self.exact and unmatched):
            return ""
        similar = self._similar(missing, unmatched, seen)
        lines: list[tuple[str, ...]] = []
        for index, recorded in enumerate(seen):
            if index in matched:
                lines.append((f"  ok {_line(recorded)}",))
            elif index in similar:
                one = self.expected[similar[index]]
                differences = one.differences(recorded) or ["it is in another position"]
                lines.append(
                    (f"   ~ {_line(recorded)}", *(f"       {text}" for text in differences[:_MAX_DIFFERENCES]))
                )
            else:
                lines.append((f"   {'+' if self.exact else ' '} {_line(recorded)}",))
        shown = [line for entry in lines[-MAX_SHOWN:] for line in entry]
        if len(lines) > MAX_SHOWN:
            shown.insert(0, f"     ... ({len(lines) - MAX_SHOWN} earlier requests)")
        near = set(similar.values())
        shown += [f"   - {self.expected[index].text}" for index in missing if index not in near][:MAX_SHOWN]
        unexpected = f", and {len(unmatched)} unexpected" if self.exact else ""
        order = "in this order" if self.ordered else "in any order"
        head = f"{len(missing)} of {len(self.expected)} expected requests ({order}) are missing{unexpected}:"
        legend = "  (ok expected, - missing, ~ differs" + (", + unexpected)" if self.exact else ")")
        return "\n".join([head, *shown, legend])

    def _similar(self, missing: list[int], unmatched: list[int], seen: Sequence[RecordedRequest]) -> dict[int, int]:
        """Return for requests that differ from a missing one in details: its index, by their index."""
        candidates = []
        for index in missing:
            one = self.expected[index]
            for other in unmatched:
                if one.is_about(seen[other]):
                    candidates.append((len(one.differences(seen[other])), index, other))
        found: dict[int, int] = {}
        for _, index, other in sorted(candidates):
            if other not in found and index not in found.values():
                found[other] = index
        return found


def _line(recorded: RecordedRequest) -> str:
    if not recorded.resource:
        text = f"{recorded.verb} {recorded.path}"
    else:
        text = f"{recorded.verb} {recorded.resource}"
        text += f".{recorded.group}" if recorded.group else ""
        text += f"/{recorded.subresource}" if recorded.subresource else ""
        name = recorded.name or _body_name(recorded)
        text += f" {recorded.namespace}/{name}" if recorded.namespace and name else f" {name or recorded.namespace}"
    text = text.rstrip()
    if recorded.user:
        text += f" by {recorded.user}"
    return text if recorded.code is None else f"{text} -> {recorded.code}"


def _in_any_order(matches: Sequence[Sequence[bool]], count: int) -> dict[int, int]:
    """
    Return a maximum matching, as the index of the request by the index of the expected one.

    @param matches: For each expected request, whether each request matches it.
    @param count: The number of requests.
    """
    owners: dict[int, int] = {}

    def assign(expected: int, tried: set[int]) -> bool:
        for request in range(count):
            if matches[expected][request] and request not in tried:
                tried.add(request)
                if request not in owners or assign(owners[request], tried):
                    owners[request] = expected
                    return True
        return False

    for expected in range(len(matches)):
        assign(expected, set())
    return {expected: request for request, expected in owners.items()}


def _in_order(matches: Sequence[Sequence[bool]], count: int) -> dict[int, int]:
    """Return the longest common subsequence; the parameters and the result are as of L{_in_any_order}."""
    rows = len(matches)
    lengths = [[0] * (count + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(count - 1, -1, -1):
            lengths[i][j] = max(lengths[i + 1][j], lengths[i][j + 1], lengths[i + 1][j + 1] + matches[i][j])
    pairs, i, j = {}, 0, 0
    while i < rows and j < count:
        if matches[i][j] and lengths[i][j] == lengths[i + 1][j + 1] + 1:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


class ExpectedRequests:
    """The context manager that C{expect_requests} returns; it compares at its end, unless there was an error."""

    def __init__(
        self,
        record: Callable[[], RequestLog],
        expectation: Expectation,
        select: Callable[[RecordedRequests], list[RecordedRequest]],
    ) -> None:
        """
        @param record: Begins to record.
        @param select: Returns the requests to compare.
        """
        self._record = record
        self._expectation = expectation
        self._select = select
        self._log: RequestLog | None = None

    def __enter__(self) -> RequestLog:
        self._log = self._record()
        return self._log

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._log is not None, "the context was entered"
        self._log.stop()
        if kind is None and (text := self._expectation.compare(self._select(self._log))):
            raise AssertionError(text)


class RequestExpectations:
    """Adds C{expect_requests} to servers that record requests."""

    if TYPE_CHECKING:

        def record_requests(self) -> RequestLog:
            """Record requests from now on."""
            raise NotImplementedError

    def expect_requests(
        self,
        *expected: ExpectedRequest | Mapping[str, Any] | str,
        ordered: bool = False,
        exact: bool = False,
        by: str | None = None,
        verbs: str | Iterable[str] | None = None,
        **selection: Any,
    ) -> ExpectedRequests:
        """
        Return a context manager that checks at its end which requests the server received.

        @param expected: L{ExpectedRequest}, its fields as a dictionary, or C{"create pods"} and C{"patch pods web-0"}.
        @param ordered: Whether they have to arrive in this order.
        @param exact: Whether other requests are errors.
        @param by: Only consider the requests of this user.
        @param verbs: Only consider these verbs; C{"write"} stands for all that change something.
        @param selection: Only consider these requests: C{resource}, C{namespace}, C{name}, C{group}...
        @return: The context manager; it returns the log of C{record_requests}.
        @raise ValueError: A request is malformed.
        """
        considered = WRITE_VERBS if verbs == "write" else None if verbs is None else _names(verbs)

        def select(log: RecordedRequests) -> list[RecordedRequest]:
            found = log.matching(user=by, **selection)
            return [one for one in found if considered is None or one.verb in considered]

        return ExpectedRequests(self.record_requests, Expectation.of(expected, ordered, exact), select)


def _names(verbs: str | Iterable[str]) -> frozenset[str]:
    return frozenset([verbs] if isinstance(verbs, str) else verbs)
