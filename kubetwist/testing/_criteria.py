"""
What a test waits for, as a function of one object: conditions, values at JSONPaths, and functions of the test.

Conditions and JSONPaths are compared as by C{kubectl wait} (kubectl, C{pkg/cmd/wait}).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from attrs import field, frozen

from ..api.jsonpath import JSONPath
from ..api.jsontypes import JSONObject, JSONValue

#: Errors of C{where} that mean "not yet": a field is missing, or has no value.
_NOT_YET: Final = (AssertionError, LookupError, TypeError, AttributeError)

#: A condition of a test on one object.
Where = Callable[[JSONObject], object]


@frozen
class Condition:
    """
    A condition in C{status.conditions}.

    @ivar kind: The type: C{"Ready"}.
    @ivar status: The expected status: C{"True"}.
    """

    kind: str
    status: str = "True"

    @classmethod
    def parse(cls, text: str) -> Condition:
        """
        Parse C{"Ready"} or C{"Ready=False"}, also with C{condition=} in front.

        @raise ValueError: The type or the status is empty.
        """
        kind, equals, status = text.removeprefix("condition=").partition("=")
        if not kind or (equals and not status):
            raise ValueError(f"{text!r} is no condition: use 'Ready' or 'Ready=False'")
        return cls(kind, status if equals else "True")

    @property
    def text(self) -> str:
        """Return the condition for messages."""
        return f"condition {self.kind}={self.status}"

    def problem(self, obj: JSONObject) -> str:
        """Return why an object does not meet the condition; C{""} if it does. Types and statuses ignore the case."""
        status = obj.get("status")
        if not isinstance(status, Mapping):
            status = {}
        for condition in status.get("conditions") or ():
            if str(condition.get("type", "")).lower() != self.kind.lower():
                continue
            current = str(condition.get("status", ""))
            if current.lower() != self.status.lower():
                reason = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
                return f"condition {self.kind} is {current}" + (f" ({reason})" if reason else "")
            observed = condition.get("observedGeneration", status.get("observedGeneration"))
            generation = (obj.get("metadata") or {}).get("generation")
            if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
                return f"condition {self.kind} is of generation {observed}, the object has generation {generation}"
            return ""
        return f"there is no condition {self.kind}"


@frozen
class PathValue:
    """
    A value at a JSONPath.

    @ivar path: The path.
    @ivar expected: The expected value; L{None} for any value.
    @ivar exact: Whether the value is compared as JSON; otherwise its text is compared, as C{kubectl} does.
    """

    path: JSONPath
    expected: JSONValue = None
    exact: bool = False

    @classmethod
    def parse(cls, text: str) -> PathValue:
        """
        Parse C{"{.status.phase}=Running"}, or a path without a value. The braces may be left out.

        @raise kubetwist.api.jsonpath.JSONPathError: The path is malformed.
        @raise ValueError: The path or the value is empty.
        """
        path, value = _split(text.removeprefix("jsonpath=").strip())
        if value is not None:
            value = value.strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            elif not value:
                raise ValueError(f"jsonpath {text!r} has no value after =")
        return cls(compile_path(path), value)

    @property
    def text(self) -> str:
        """Return the path and the value for messages."""
        shown = f"jsonpath {{{self.path.text}}}"
        return shown if self.expected is None and not self.exact else f"{shown}={self.expected}"

    def problem(self, obj: JSONObject) -> str:
        """Return why an object has not the value; C{""} if it has."""
        values = self.path.find(obj)
        if not values:
            return f"{{{self.path.text}}} has no value"
        if self.exact:
            return "" if values == [self.expected] else f"{{{self.path.text}}} is {_shown(values)}"
        if self.expected is None:
            return ""
        if len(values) > 1:
            return f"{{{self.path.text}}} has {len(values)} values"
        if isinstance(values[0], dict | list):
            return f"{{{self.path.text}}} is a list or an object, which is not compared with text"
        return "" if _text(values[0]).strip() == self.expected.strip() else f"{{{self.path.text}}} is {_shown(values)}"


def compile_path(text: str) -> JSONPath:
    """
    Return the JSONPath that C{kubectl} reads from C{"{.a.b}"}, C{".a.b"} or C{"a.b"}.

    @raise kubetwist.api.jsonpath.JSONPathError: The path is malformed.
    @raise ValueError: The path is empty.
    """
    path = text.strip()
    if path.startswith("{") and path.endswith("}"):
        path = path[1:-1].strip()
    if not path:
        raise ValueError("the jsonpath is empty")
    return JSONPath(path if path[0] in ".[$" else f".{path}")


def _split(text: str) -> tuple[str, str | None]:
    """Split at the first equals sign outside of brackets and braces, which filters contain."""
    depth, quoted = 0, ""
    for position, character in enumerate(text):
        if quoted:
            quoted = "" if character == quoted else quoted
        elif character in "'\"":
            quoted = character
        elif character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "=" and not depth:
            rest = text[position + 1 :]
            return text[:position], rest.removeprefix("=")
    return text, None


def _text(value: JSONValue) -> str:
    """Return a scalar as Go prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _shown(values: list[JSONValue]) -> str:
    text = ", ".join(repr(value) for value in values[:5])
    return text if len(text) <= 200 else f"{text[:200]}..."


@frozen
class Criteria:
    """
    All that an object has to meet; without anything, it has to exist.

    @ivar where: A function of the test; a missing field in it means "not yet".
    """

    conditions: tuple[Condition, ...] = ()
    paths: tuple[PathValue, ...] = ()
    where: Where | None = field(default=None, eq=False)

    @classmethod
    def of(
        cls,
        condition: str | Iterable[str] | None = None,
        jsonpath: str | Iterable[str] | Mapping[str, JSONValue] | None = None,
        where: Where | None = None,
    ) -> Criteria:
        """
        Return the criteria of the arguments of C{wait_for}.

        @param condition: One condition or several.
        @param jsonpath: One path or several, or values by their paths.
        @param where: A function of the test.
        @raise ValueError: A condition or path is malformed.
        """
        conditions = () if condition is None else (condition,) if isinstance(condition, str) else tuple(condition)
        paths: Iterable[PathValue]
        if isinstance(jsonpath, Mapping):
            paths = (PathValue(compile_path(path), value, exact=True) for path, value in jsonpath.items())
        else:
            texts = () if jsonpath is None else (jsonpath,) if isinstance(jsonpath, str) else tuple(jsonpath)
            paths = map(PathValue.parse, texts)
        return cls(tuple(map(Condition.parse, conditions)), tuple(paths), where)

    @property
    def text(self) -> str:
        """Return the criteria for messages; C{""} without any."""
        parts = [one.text for one in self.conditions]
        parts += [one.text for one in self.paths]
        if self.where is not None:
            parts.append(f"where {getattr(self.where, '__name__', repr(self.where))}")
        return " and ".join(parts)

    def problems(self, obj: JSONObject) -> list[str]:
        """
        Return what an object does not meet; empty if it meets everything.

        @raise Exception: The function of the test raised something else than the errors that mean "not yet".
        """
        checks: tuple[Condition | PathValue, ...] = (*self.conditions, *self.paths)
        found = [one.problem(obj) for one in checks]
        if self.where is not None:
            try:
                if not self.where(obj):
                    found.append("where returned a false value")
            except _NOT_YET as error:
                found.append(f"where raised {type(error).__name__}: {error}")
        return [problem for problem in found if problem]
