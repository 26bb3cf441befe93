"""
Values of CEL as Python objects.

===============  =====================================================
CEL              Python
===============  =====================================================
int              C{int}, within 64 bits
uint             L{UInt}
double           C{float}
bool, string     C{bool}, C{str}
bytes            C{bytes}
null             C{None}
list             C{list}, or a L{ListValue} that converts elements on access
map, objects     C{dict}, or a L{MapValue}
timestamp        L{Timestamp}, nanoseconds since 1970
duration         L{Duration}, nanoseconds
type             L{kubetwist.cel.types.Type}
optional         L{Optional}
opaque           an L{OpaqueValue} of a library
===============  =====================================================

In Python C{True == 1}, in CEL not. Values whose types are not known must be compared by L{equal}, and keys must be
looked up by L{find}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubetwist.cel import types
from kubetwist.cel.errors import CelError, no_such_overload
from kubetwist.cel.types import Type

Value = Any

MIN_INT: Final = -(1 << 63)
MAX_INT: Final = (1 << 63) - 1
MAX_UINT: Final = (1 << 64) - 1


class UInt(int):
    """An unsigned integer. Arithmetic on it gives plain integers; callers wrap the result."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class _Nanoseconds:
    """Base of timestamps and durations: a number of nanoseconds."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nanoseconds) and type(other) is type(self) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash((type(self), self.ns))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ns})"


class Timestamp(_Nanoseconds):
    """
    A timestamp, in nanoseconds since 1970 in UTC.

    @ivar offset: UTC offset in seconds of the string that it was parsed from; used only to format the timestamp.
    """

    __slots__ = ("offset",)

    def __init__(self, ns: int, offset: int = 0) -> None:
        super().__init__(ns)
        self.offset = offset


class Duration(_Nanoseconds):
    """A duration in nanoseconds, within 64 bits."""

    __slots__ = ()


class Optional:
    """An optional value: L{NONE} or C{Optional(value)}."""

    __slots__ = ("_value", "present")

    def __init__(self, value: Value) -> None:
        self._value = value
        self.present = True

    @property
    def value(self) -> Value:
        """
        Return the value.

        @raise CelError: The optional is empty.
        """
        if not self.present:
            raise CelError("optional.none() dereference")
        return self._value

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.present else "NONE"


NONE: Final = Optional(None)
NONE.present = False


class OpaqueValue:
    """
    Base of opaque values of a library.

    Subclasses define C{cel_type}, L{equals} unless values are compared by identity, and L{size} if costs depend on it.
    """

    __slots__ = ()

    cel_type: Type

    def equals(self, other: Value) -> bool:
        """Return whether this value equals another value of any type."""
        return self is other

    def size(self) -> int | None:
        """Return the size for cost tracking; C{None} stands for 1."""
        return None


class ListValue(Sequence[Value]):
    """A list whose elements are converted on access; iteration, C{len} and indices work as with C{list}."""

    __slots__ = ()

    def equals(self, other: Sequence[Value]) -> bool:
        """Return whether another list has equal elements in the same order; sets and maps override this."""
        return len(self) == len(other) and all(map(equal, self, other))

    def concat(self, other: Sequence[Value]) -> Sequence[Value]:
        """Return the result of C{+}: the elements of both lists in order; sets and maps override this."""
        return [*self, *other]


class MapValue(Mapping[Value, Value]):
    """A map or object whose values are converted on access; it is read like a C{dict}."""

    __slots__ = ()

    #: The declared type, for values of object types.
    cel_type: Type = types.MAP


class MixedMap(MapValue):
    """A map with both booleans and numbers as keys, which are equal in a C{dict}."""

    __slots__ = ("_booleans", "_keys", "_non_booleans")

    def __init__(self, items: Iterable[tuple[Value, Value]]) -> None:
        self._booleans: dict[Value, Value] = {}
        self._non_booleans: dict[Value, Value] = {}
        self._keys: list[Value] = []
        for key, value in items:
            entries = self._entries_for(key)
            if key not in entries:
                self._keys.append(key)
            entries[key] = value

    @classmethod
    def needed(cls, keys: Iterable[Value]) -> bool:
        """Return whether a C{dict} would merge some of the keys."""
        kinds = set(map(type, keys))
        return bool in kinds and not kinds.isdisjoint(_NUMBERS)

    def _entries_for(self, key: Value) -> dict[Value, Value]:
        return self._booleans if type(key) is bool else self._non_booleans

    def __getitem__(self, key: Value) -> Value:
        return self._entries_for(key)[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


LISTS: Final = (list, ListValue)
MAPS: Final = (dict, MapValue)
_NUMBERS: Final = frozenset({int, UInt, float})
MISSING: Final = object()


_TYPES: Final[dict[type, Type]] = {
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    bool: types.BOOL,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: types.LIST,
    dict: types.MAP,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    Optional: types.OPTIONAL,
}


def type_of(value: Value) -> Type:
    """Return the run-time type of a value: lists and maps without their parameters."""
    known_type = _TYPES.get(type(value))
    if known_type is not None:
        return known_type
    if isinstance(value, Type):
        return types.TYPE
    if isinstance(value, ListValue):
        return types.LIST
    return value.cel_type  # type: ignore[no-any-return]


def equal(left: Value, right: Value) -> bool:
    """Evaluate C{==}: numbers across types, containers by their elements, other values only within their type."""
    kind, other = type(left), type(right)
    if kind is str or other is str or left is None or right is None:
        return kind is other and bool(left == right)
    if kind in _NUMBERS:
        return other in _NUMBERS and _same_number(left, right)
    if isinstance(left, LISTS):
        if not isinstance(right, LISTS):
            return False
        if isinstance(left, ListValue):
            # The left list decides whether the order counts.
            return left.equals(right)
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, MAPS):
        return isinstance(right, MAPS) and _same_entries(left, right)
    if kind is Optional:
        if other is not Optional or left.present != right.present:
            return False
        return not left.present or equal(left.value, right.value)
    if isinstance(left, Type):
        return isinstance(right, Type) and left.name == right.name
    if isinstance(left, OpaqueValue):
        return left.equals(right)
    return kind is other and bool(left == right)


def _same_number(left: float, right: float) -> bool:
    # cel-go compares with a double as doubles, which do not represent every integer.
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return left == right


def _same_entries(left: Mapping[Value, Value], right: Mapping[Value, Value]) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        other = find(right, key)
        if other is MISSING or not equal(value, other):
            return False
    return True


def find(mapping: Mapping[Value, Value], key: Value) -> Value:
    """
    Return the value of a key.

    @return: L{MISSING} if there is none, also for types that cannot be keys.
    """
    kind = type(key)
    if kind is str:
        return mapping.get(key, MISSING)
    if kind is bool or (kind in _NUMBERS and key in (0, 1)):
        if type(mapping) is MixedMap:
            return mapping.get(key, MISSING)
        # In Python 1 equals True. All keys have the type of the first one, otherwise this is a MixedMap.
        first = next(iter(mapping), None)
        return mapping.get(key, MISSING) if (type(first) is bool) is (kind is bool) else MISSING
    if kind in _NUMBERS:
        return mapping.get(key, MISSING)
    return MISSING


def compare(left: Value, right: Value) -> int:
    """
    Compare two values.

    @return: -1, 0 or 1.
    @raise CelError: The values cannot be ordered.
    """
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            raise no_such_overload()
        if kind is float or other is float:
            left, right = float(left), float(right)
            if left != left or right != right:
                raise CelError("NaN values cannot be ordered")
        return int(left > right) - int(left < right)
    if kind is not other:
        raise no_such_overload()
    if kind is Timestamp or kind is Duration:
        return int(left.ns > right.ns) - int(left.ns < right.ns)
    if kind is str or kind is bytes or kind is bool:
        return int(left > right) - int(left < right)
    raise no_such_overload()


def size_for_cost(value: Value) -> int:
    """Return the size of a value for size-dependent costs; 1 for values without a size."""
    kind = type(value)
    if kind is str or kind is list or kind is dict or kind is bytes:
        length: int = len(value)
        return length
    if kind in _TYPES:
        if kind is Optional and value.present:
            return size_for_cost(value.value)
        return 1
    if isinstance(value, (ListValue, MapValue)):
        return len(value)
    if isinstance(value, OpaqueValue):
        size = value.size()
        return 1 if size is None else size
    return 1


def entries(value: Mapping[Value, Value]) -> Iterator[tuple[Value, Value]]:
    """Return the entries of a map in the order of the JSON object."""
    return iter(value.items())
