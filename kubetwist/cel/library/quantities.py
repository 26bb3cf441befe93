"""
Functions on quantities: C{500m}, C{1Gi}.

See kubernetes/apiserver, C{pkg/cel/library/quantity.go}. Whether a quantity is an integer depends on its
representation in apimachinery, not only on its amount: C{1000m} is not an integer.
"""

from __future__ import annotations

from typing import Final

from kubetwist.api.quantity import Quantity, int64_amount
from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import BOOL, DOUBLE, INT, STRING, ObjectType
from kubetwist.cel.values import MAX_INT, MIN_INT, OpaqueValue, Value

QUANTITY_TYPE: Final = ObjectType("kubernetes.Quantity")

_FORMAT_ERROR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _within(number: int) -> bool:
    return MIN_INT <= number <= MAX_INT


class QuantityValue(OpaqueValue):
    """
    A quantity: a number times a power of ten.

    @ivar is_int64: Whether apimachinery represents it as C{int64Amount}, not as C{inf.Dec}.
    """

    __slots__ = ("exponent", "is_int64", "number")
    cel_type = QUANTITY_TYPE

    def __init__(self, number: int, exponent: int, is_int64: bool) -> None:
        self.number = number
        self.exponent = exponent
        self.is_int64 = is_int64

    @classmethod
    def parse(cls, text: str) -> QuantityValue:
        """
        Parse a quantity.

        @raise CelError: The quantity is invalid.
        """
        # Quantities in objects may have surrounding blanks, but those in CEL may not.
        if text != text.strip():
            raise CelError(_FORMAT_ERROR)
        try:
            quantity = Quantity.parse(text)
        except ValueError as error:
            raise CelError(str(error)) from None
        parts = int64_amount(text)
        if parts is not None:
            return cls(*parts, is_int64=True)
        if quantity.family == "binary" and abs(quantity.nanos) == MAX_INT * 10**9:
            return cls(quantity.sign() * MAX_INT, 0, is_int64=False)
        return cls(quantity.nanos, -9, is_int64=False)

    def equals(self, other: Value) -> bool:
        """Compare by amount."""
        return isinstance(other, QuantityValue) and self.compare(other) == 0

    def compare(self, other: QuantityValue) -> int:
        """Compare two quantities: -1, 0 or 1."""
        left, right, _ = _align(self, other)
        return (left > right) - (left < right)

    def add(self, other: QuantityValue) -> QuantityValue:
        """Return the sum."""
        if self.is_int64 and other.is_int64:
            if not other.number:
                return self
            if not self.number:
                return other
            left, right, exponent = _align(self, other)
            if _within(left) and _within(right) and _within(left + right):
                return QuantityValue(left + right, exponent, is_int64=True)
        left, right, exponent = _align(self, other)
        return QuantityValue(left + right, exponent, is_int64=False)

    def negate(self) -> QuantityValue:
        """Return the negated amount."""
        return QuantityValue(-self.number, self.exponent, self.is_int64)

    def as_int64(self) -> int | None:
        """Return the amount as an integer, or C{None} if apimachinery's AsInt64() fails."""
        if not self.is_int64 or self.exponent < 0 or (self.number and self.exponent > 18):
            return None
        number = self.number * 10**self.exponent if self.number else 0
        return number if _within(number) else None


def _align(left: QuantityValue, other: QuantityValue) -> tuple[int, int, int]:
    """Return both numbers with a common exponent, the lower of the two."""
    exponent = min(left.exponent, other.exponent)
    return (
        left.number * 10 ** (left.exponent - exponent),
        other.number * 10 ** (other.exponent - exponent),
        exponent,
    )


def _is_quantity(text: str) -> bool:
    try:
        QuantityValue.parse(text)
    except CelError:
        return False
    return True


def _sign(quantity: QuantityValue) -> int:
    return (quantity.number > 0) - (quantity.number < 0)


def _is_integer(quantity: QuantityValue) -> bool:
    return quantity.as_int64() is not None


def _as_integer(quantity: QuantityValue) -> int:
    number = quantity.as_int64()
    if number is None:
        raise CelError("cannot convert value to integer")
    return number


def _as_float(quantity: QuantityValue) -> float:
    try:
        base = float(quantity.number)
    except OverflowError:
        base = float("inf") if quantity.number > 0 else float("-inf")
    if not quantity.exponent:
        return base
    # Powers of ten beyond the range of a double are infinity or zero.
    power = float(f"1e{quantity.exponent}")
    return base * power


def _add(quantity: QuantityValue, other: QuantityValue) -> QuantityValue:
    return quantity.add(other)


def _add_int(quantity: QuantityValue, number: int) -> QuantityValue:
    return quantity.add(QuantityValue(number, 0, is_int64=True))


def _sub(quantity: QuantityValue, other: QuantityValue) -> QuantityValue:
    return quantity.add(other.negate())


def _sub_int(quantity: QuantityValue, number: int) -> QuantityValue:
    return quantity.add(QuantityValue(-number, 0, is_int64=True))


def _is_greater(quantity: QuantityValue, other: QuantityValue) -> bool:
    return quantity.compare(other) == 1


def _is_less(quantity: QuantityValue, other: QuantityValue) -> bool:
    return quantity.compare(other) == -1


def _compare(quantity: QuantityValue, other: QuantityValue) -> int:
    return quantity.compare(other)


_ONE: Final = (QUANTITY_TYPE,)
_TWO: Final = (QUANTITY_TYPE, QUANTITY_TYPE)
_WITH_INT: Final = (QUANTITY_TYPE, INT)

QUANTITIES: Final = Library(
    "kubernetes.quantity",
    [
        function("quantity", overload("string_to_quantity", (STRING,), QUANTITY_TYPE, QuantityValue.parse)),
        function("isQuantity", overload("is_quantity_string", (STRING,), BOOL, _is_quantity)),
        # In kube-apiserver, too, this is not a member function: sign(quantity("1")).
        function("sign", overload("quantity_sign", _ONE, INT, _sign)),
        function("isGreaterThan", member("quantity_is_greater_than", _TWO, BOOL, _is_greater)),
        function("isLessThan", member("quantity_is_less_than", _TWO, BOOL, _is_less)),
        function("compareTo", member("quantity_compare_to", _TWO, INT, _compare)),
        function("asApproximateFloat", member("quantity_get_float", _ONE, DOUBLE, _as_float)),
        function("asInteger", member("quantity_get_int", _ONE, INT, _as_integer)),
        function("isInteger", member("quantity_is_integer", _ONE, BOOL, _is_integer)),
        function(
            "add",
            member("quantity_add", _TWO, QUANTITY_TYPE, _add),
            member("quantity_add_int", _WITH_INT, QUANTITY_TYPE, _add_int),
        ),
        function(
            "sub",
            member("quantity_sub", _TWO, QUANTITY_TYPE, _sub),
            member("quantity_sub_int", _WITH_INT, QUANTITY_TYPE, _sub_int),
        ),
    ],
)
