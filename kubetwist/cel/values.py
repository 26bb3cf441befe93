"""
The values of CEL, as Python objects.

===============  =====================================================
CEL              Python
===============  =====================================================
int              C{int}, within 64 bits
uint             L{UInt}
double           C{float}
bool, string     C{bool}, C{str}
bytes            C{bytes}
null             C{None}
list             C{list}, or a L{ListValue} that converts what is taken out
map, objects     C{dict}, or a L{MapValue}
timestamp        L{Timestamp}, nanoseconds since 1970
duration         L{Duration}, nanoseconds
type             L{kubetwist.cel.types.Type}
optional         L{Optional}
opaque           an L{OpaqueValue} of the library that knows it
===============  =====================================================

Python takes C{True} for 1; here they are different, so nothing but L{equal} and L{find} may compare values or look for
keys unless their types are known.
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
    """A number of nanoseconds; the subclass defines its meaning."""

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
    A moment, in nanoseconds since 1970 in UTC.

    @ivar offset: Seconds east of UTC of the text that it was read from; only its own text depends on it.
    """

    __slots__ = ("offset",)

    def __init__(self, ns: int, offset: int = 0) -> None:
        super().__init__(ns)
        self.offset = offset


class Duration(_Nanoseconds):
    """A length of time, in nanoseconds, within 64 bits."""

    __slots__ = ()


class Optional:
    """A value that may be missing: L{NONE} or C{Optional(value)}."""

    __slots__ = ("_value", "present")

    def __init__(self, value: Value) -> None:
        self._value = value
        self.present = True

    @property
    def value(self) -> Value:
        """
        Return the value held.

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
    Base of values that belong to a library.

    Subclasses give C{cel_type} and, where it differs from identity, L{equals}; C{size} if C{size()} or the price of an
    operation depends on it.
    """

    __slots__ = ()

    cel_type: Type

    def equals(self, other: Value) -> bool:
        """Return whether another value, of any type, equals this one."""
        return self is other

    def size(self) -> int | None:
        """Return the size used for costs; C{None} counts as one."""
        return None


class ListValue(Sequence[Value]):
    """A list whose elements are made when they are taken out; iteration, C{len} and indices work as with C{list}."""

    __slots__ = ()

    def equals(self, other: Sequence[Value]) -> bool:
        """Return whether a list has the same elements; lists with another notion of equality override this."""
        return len(self) == len(other) and all(map(equal, self, other))

    def concat(self, other: Sequence[Value]) -> Sequence[Value]:
        """Return the result of C{+}; overridden by lists whose result is not the elements of both in order."""
        return [*self, *other]


class MapValue(Mapping[Value, Value]):
    """A map or object whose values are made when they are taken out; it is read like a C{dict}."""

    __slots__ = ()

    #: The declared type, for values of object types.
    cel_type: Type = types.MAP


class MixedMap(MapValue):
    """A map with both booleans and numbers as keys, which a C{dict} does not distinguish."""

    __slots__ = ("_booleans", "_keys", "_others")

    def __init__(self, items: Iterable[tuple[Value, Value]]) -> None:
        self._booleans: dict[Value, Value] = {}
        self._others: dict[Value, Value] = {}
        self._keys: list[Value] = []
        for key, value in items:
            part = self._part(key)
            if key not in part:
                self._keys.append(key)
            part[key] = value

    @classmethod
    def needed(cls, keys: Iterable[Value]) -> bool:
        """Return whether a C{dict} would merge some of the keys."""
        kinds = set(map(type, keys))
        return bool in kinds and not kinds.isdisjoint(_NUMBERS)

    def _part(self, key: Value) -> dict[Value, Value]:
        return self._booleans if type(key) is bool else self._others

    def __getitem__(self, key: Value) -> Value:
        return self._part(key)[key]

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
    found = _TYPES.get(type(value))
    if found is not None:
        return found
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
    # Against a double the reference compares in doubles, which do not hold every integer.
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
    Look a key up.

    @return: Its value, or L{MISSING}: also for keys of types that no map has.
    """
    kind = type(key)
    if kind is str:
        return mapping.get(key, MISSING)
    if kind is bool or (kind in _NUMBERS and key in (0, 1)):
        if type(mapping) is MixedMap:
            return mapping.get(key, MISSING)
        # Python would find 1 for True, and the other way round. The first key speaks for all.
        first = next(iter(mapping), None)
        return mapping.get(key, MISSING) if (type(first) is bool) is (kind is bool) else MISSING
    if kind in _NUMBERS:
        return mapping.get(key, MISSING)
    return MISSING


def compare(left: Value, right: Value) -> int:
    """
    Order two values: -1, 0 or 1.

    @raise CelError: They have no order.
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
    """Return the size of a value for size-dependent costs: 1 for values without a size."""
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
    """Return the entries of a map, in the order of JSON."""
    return iter(value.items())
