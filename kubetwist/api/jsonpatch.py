"""
JSON patches (RFC 6902) as C{evanphx/json-patch} v4, the library of the reference, applies them.

It is lenient: C{replace} of a missing key adds it, C{add} without a value and C{copy} from a missing key write null,
negative indexes count from the end, and text before the first slash of a path is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson

from .documents import (
    ENCODER_DEPTH,
    MAX_DEPTH,
    json_type,
)
from .errors import APIStatusError
from .jsontypes import JSONObject, JSONValue

#: Maximum number of operations, as in the reference.
MAX_OPERATIONS: Final = 10_000
#: Maximum number of bytes that the C{copy} operations of a patch may copy.
MAX_COPIED_BYTES: Final = 3 << 20
#: Maximum number of list items that operations may shift. The reference has no such limit, and is slow.
MAX_SHIFTED_ITEMS: Final = 100_000_000

_REJECTED: Final = "the server rejected our request due to an error in our request"
_FIELDS: Final = ("op", "path", "from", "value")


class PatchError(APIStatusError):
    """A patch that is invalid (400), is too large (413) or does not apply (422)."""


class _DoesNotApply(Exception):
    """
    The reason in the reference's words.

    The reference hides it from clients that sent the patch; other clients whose object is patched see it.
    """


class FailedTest(_DoesNotApply):
    """A C{test} operation found another value."""


def validate_json_patch(operations: JSONValue) -> list[str]:
    """
    Return the errors of strict field validation for a patch, besides duplicate fields.

    @raise PatchError: The value is not a patch.
    """
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(_checked(operations))
        for name in operation
        if name not in _FIELDS
    ]


def check_operations(operations: JSONValue) -> None:
    """
    Reject a body that is not a list of operations, if field validation is off.

    Parts of operations with a wrong type are accepted here: such an operation fails when it is applied.

    @raise PatchError: The body is not a list, or has items that are not objects (400).
    """
    if operations is None:
        return
    if not isinstance(operations, list):
        reason = f"json: cannot unmarshal {json_type(operations)} into Go value of type jsonpatch.Patch"
        raise PatchError(400, "BadRequest", reason)
    for index, operation in enumerate(operations):
        if operation is not None and not isinstance(operation, dict):
            path = f"Patch.{index} of type jsonpatch.Operation"
            raise PatchError(400, "BadRequest", f"json: cannot unmarshal {json_type(operation)} into {path}")


def apply_json_patch(document: JSONValue, operations: JSONValue) -> JSONValue:
    """
    Apply a patch.

    @param document: Modified in place; invalid after a failure.
    @param operations: The decoded patch; not changed, so that it can be applied again. L{None} changes nothing.
    @raise PatchError: The value is not a patch, is too large, or does not apply.
    """
    check_operations(operations)
    steps = [] if operations is None else operations
    if len(steps) > MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(steps)}",
        )
    target = _Target(document)
    try:
        for step in steps:
            target.apply({} if step is None else step)
        _check_depth(target.root)
    except _DoesNotApply as why:
        raise PatchError(422, "Invalid", _REJECTED, {}) from why
    return target.root


def _checked(operations: JSONValue) -> list[JSONObject]:
    """Return the operations with fields of the right types; null is an operation without fields."""
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _undecodable(operations, "Go value", "[]handlers.jsonPatchOp")
    steps = []
    for operation in operations:
        if operation is None:
            operation = {}
        elif not isinstance(operation, dict):
            raise _undecodable(operation, "Go value", "handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            part = operation.get(name)
            if part is not None and not isinstance(part, str):
                raise _undecodable(part, f"Go struct field jsonPatchOp.{name}", "string")
        steps.append(operation)
    return steps


def _undecodable(value: JSONValue, path: str, go_type: str) -> PatchError:
    reason = f"json: cannot unmarshal {json_type(value)} into {path} of type {go_type}"
    return PatchError(400, "BadRequest", f"error decoding patch: {reason}")


_WRAPS: Final = ENCODER_DEPTH - MAX_DEPTH


def _check_depth(value: JSONValue) -> None:
    """Reject results that nest too deep to be encoded, which move operations can produce."""
    for _ in range(_WRAPS):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        raise _DoesNotApply("the result nests too deep") from None


_escape = re.compile("~[01]").sub


def _unescaped(token: str) -> str:
    return _escape(lambda match: "/" if match.group() == "~1" else "~", token) if "~" in token else token


_integer = re.compile("[+-]?[0-9]{1,18}").fullmatch


def _index(key: str) -> int:
    if not _integer(key):
        raise _DoesNotApply(f"{key!r} is no index")
    return int(key)


def _out_of_range(index: int) -> _DoesNotApply:
    return _DoesNotApply(f"Unable to access invalid index: {index}: invalid index referenced")


@contextmanager
def _wrong(path: str) -> Iterator[None]:
    """Prefix the error with the attempted operation."""
    try:
        yield
    except _DoesNotApply as error:
        # Not a new exception: since Python 3.13, it and the context manager form a cycle, which keeps the document.
        error.args = (f"{path}: {error}",)
        raise


def _copied(value: JSONValue) -> JSONValue:
    return orjson.loads(orjson.dumps(value)) if isinstance(value, (dict, list)) else value


class _Target:
    """The document while a patch is applied."""

    def __init__(self, document: JSONValue) -> None:
        self.root = document
        self._copied = 0
        self._shifted = 0

    def apply(self, step: JSONObject) -> None:
        """Apply one operation."""
        kind = step.get("op")
        if not isinstance(kind, str):
            kind = "unknown"
        method = _METHODS.get(kind)
        if method is None:
            raise _DoesNotApply(f"Unexpected kind: {kind}")
        method(self, step)

    def _path(self, step: JSONObject, name: str = "path") -> str:
        path = step.get(name)
        if not isinstance(path, str):
            raise _DoesNotApply(f"operation misses its {name}")
        return path

    def _find(self, path: str, missing: str) -> tuple[JSONValue, str]:
        """
        Return the container that a path leads to, and the key in it.

        @param missing: The message if the path does not exist.
        """
        tokens = path.split("/")
        container = self.root
        try:
            for token in tokens[1:-1]:
                container = self._get(container, _unescaped(token))
        except _DoesNotApply:
            container = None
        if len(tokens) < 2 or not isinstance(container, (dict, list)):
            raise _DoesNotApply(f"{missing}: missing value")
        return container, _unescaped(tokens[-1])

    def _get(self, container: JSONValue, key: str) -> JSONValue:
        """Return the value at a key; L{None} if the object does not have the key, or the value is a scalar."""
        if isinstance(container, dict):
            return container.get(key)
        if not isinstance(container, list):
            raise _DoesNotApply("missing value")
        index = _index(key)
        if not -len(container) <= index < len(container):
            raise _out_of_range(index)
        return container[index]

    def _shift(self, items: list[JSONValue]) -> None:
        self._shifted += len(items)
        if self._shifted > MAX_SHIFTED_ITEMS:
            raise _DoesNotApply("too much to do")

    def _insert(self, container: JSONValue, key: str, value: JSONValue) -> None:
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            index, size = _index(key), len(container) + 1
            if not -size <= index < size:
                raise _out_of_range(index)
            self._shift(container)
            container.insert(index if index >= 0 else index + size, value)

    def _delete(self, container: JSONValue, key: str) -> None:
        if isinstance(container, dict):
            if key not in container:
                raise _DoesNotApply(f"Unable to remove nonexistent key: {key}: missing value")
            del container[key]
        else:
            self._get(container, key)
            self._shift(container)
            del container[_index(key)]

    def add(self, step: JSONObject) -> None:
        path = self._path(step)
        container, key = self._find(path, f'add operation does not apply: doc is missing path: "{path}"')
        with _wrong(f"error in add for path: '{path}'"):
            self._insert(container, key, _copied(step.get("value")))

    def remove(self, step: JSONObject) -> None:
        path = self._path(step)
        container, key = self._find(path, f'remove operation does not apply: doc is missing path: "{path}"')
        with _wrong(f"error in remove for path: '{path}'"):
            self._delete(container, key)

    def replace(self, step: JSONObject) -> None:
        path = self._path(step)
        value = _copied(step.get("value"))
        if not path:
            if not isinstance(value, (dict, list)):
                raise _DoesNotApply("replace operation value must be object or array: %!w(<nil>)")
            self.root = value
            return
        container, key = self._find(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(container, dict):
            container[key] = value
        else:
            with _wrong(f"replace operation does not apply: doc is missing key: {path}"):
                self._get(container, key)
            container[_index(key)] = value

    def move(self, step: JSONObject) -> None:
        source = self._path(step, "from")
        container, key = self._find(source, f"move operation does not apply: doc is missing from path: {source}")
        with _wrong(f"error in move for path: '{source}'"):
            value = self._get(container, key)
            self._delete(container, key)
        path = self._path(step)
        container, key = self._find(path, f"move operation does not apply: doc is missing destination path: {path}")
        with _wrong(f"error in move for path: '{path}'"):
            self._insert(container, key, value)

    def copy(self, step: JSONObject) -> None:
        source = self._path(step, "from")
        container, key = self._find(source, f"copy operation does not apply: doc is missing from path: {source}")
        with _wrong(f"error in copy for from: '{source}'"):
            value = self._get(container, key)
        path = self._path(step)
        container, key = self._find(path, f"copy operation does not apply: doc is missing destination path: {path}")
        if value is not None:
            try:
                encoded = orjson.dumps(value)
            except TypeError:
                raise _DoesNotApply("what is copied nests too deep") from None
            self._copied += len(encoded)
            if self._copied > MAX_COPIED_BYTES:
                raise _DoesNotApply("too much is copied")
            value = _copied(value)
        with _wrong("error while adding value during copy"):
            self._insert(container, key, value)

    def test(self, step: JSONObject) -> None:
        path = self._path(step)
        if path:
            container, key = self._find(path, f"test operation does not apply: is missing path: {path}")
            with _wrong(f"error in test for path: '{path}'"):
                result = self._get(container, key)
        else:
            result = self.root
        if not _equal(result, step.get("value")):
            raise FailedTest(f"testing value {path} failed: test failed")


_METHODS: Final = {
    "add": _Target.add,
    "remove": _Target.remove,
    "replace": _Target.replace,
    "move": _Target.move,
    "copy": _Target.copy,
    "test": _Target.test,
}


def _equal(one: JSONValue, other: JSONValue) -> bool:
    """Return whether two values have the same JSON: unlike in Python, C{1}, C{1.0} and C{true} differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and _equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
