"""Types of CEL, as the checker uses them and C{type(x)} returns them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto

DYN_NAME = "dyn"


class Kind(Enum):
    """Kinds of types; types of different kinds never match."""

    DYN = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    ERROR = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    TYPE_PARAM = auto()
    UINT = auto()


class Type:
    """
    A CEL type: its kind, name and parameters.

    Types compare by value, not by identity, so they may be created anywhere. As a value of CEL (the result of
    C{type(x)}) types are compared by name only, by L{kubetwist.cel.values.equal}.
    """

    __slots__ = ("_hash", "kind", "name", "nullable", "parameters")

    def __init__(self, kind: Kind, name: str, parameters: tuple[Type, ...] = (), nullable: bool = False) -> None:
        self.kind = kind
        self.name = name
        self.parameters = parameters
        #: Whether the value of a primitive type may also be null: C{wrapper(int)}.
        self.nullable = nullable
        self._hash = hash((kind, name, parameters, nullable))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        return (
            self.kind is other.kind
            and self.name == other.name
            and self.nullable == other.nullable
            and self.parameters == other.parameters
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        name = f"wrapper({self.name})" if self.nullable else self.name
        if self.kind is Kind.TYPE_PARAM:
            return f"<{name}>"
        if not self.parameters:
            return name
        return f"{name}({', '.join(map(str, self.parameters))})"

    def __repr__(self) -> str:
        return f"<Type {self}>"

    @property
    def is_dyn(self) -> bool:
        """Return whether the type is known only at run time."""
        return self.kind is Kind.DYN

    def fields(self) -> Mapping[str, Type]:
        """
        Return the fields that may be selected, by identifier; empty for types that are not objects.
        """
        return {}


class ObjectType(Type):
    """
    An object type with fields, whose values are JSON objects.

    Object types are identified by name, as in cel-go.

    @ivar closed: Whether no fields are declared, so that none can be selected.
    """

    __slots__ = ("_fields", "_load", "closed", "make")

    def __init__(
        self,
        name: str,
        fields: Mapping[str, Type] | Callable[[], Mapping[str, Type]] | None = None,
        make: Callable[[Mapping[str, object]], object] | None = None,
    ) -> None:
        """
        @param name: The type name.
        @param fields: The types of the fields, or a function that returns them at first use; L{None} for a type whose
            values only functions can read.
        @param make: Makes a value from the fields of C{Name{field: value}}; L{None} for a plain dict.
        """
        super().__init__(Kind.STRUCT, name)
        self._load: Callable[[], Mapping[str, Type]] | None = fields if callable(fields) else None
        self._fields: Mapping[str, Type] = {} if fields is None or callable(fields) else fields
        self.closed = fields is None
        self.make = make

    def fields(self) -> Mapping[str, Type]:
        """Return the fields, which are computed at first use."""
        if self._load is not None:
            self._fields, self._load = self._load(), None
        return self._fields


BOOL = Type(Kind.BOOL, "bool")
BYTES = Type(Kind.BYTES, "bytes")
DOUBLE = Type(Kind.DOUBLE, "double")
DURATION = Type(Kind.DURATION, "google.protobuf.Duration")
DYN = Type(Kind.DYN, DYN_NAME)
ERROR = Type(Kind.ERROR, "error")
INT = Type(Kind.INT, "int")
NULL = Type(Kind.NULL, "null_type")
STRING = Type(Kind.STRING, "string")
TIMESTAMP = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(Kind.TYPE, "type")
UINT = Type(Kind.UINT, "uint")


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps from a key type to a value type."""
    return Type(Kind.MAP, "map", (key, value))


def type_of_type(parameter: Type) -> Type:
    """Return the type of a type: the type of the identifier C{int} is C{type(int)}."""
    return Type(Kind.TYPE, "type", (parameter,))


def opaque(name: str, *parameters: Type) -> Type:
    """Return an opaque type, whose values only functions can read: C{net.IP}."""
    return Type(Kind.OPAQUE, name, parameters)


def optional_of(parameter: Type) -> Type:
    """Return the type of optional values: C{optional_type(string)}."""
    return Type(Kind.OPAQUE, "optional_type", (parameter,))


def type_parameter(name: str) -> Type:
    """Return a type parameter of a signature: C{T} in C{list(T)}."""
    return Type(Kind.TYPE_PARAM, name)


def nullable(primitive: Type) -> Type:
    """Return the wrapper type of a primitive type, which also includes null."""
    return Type(primitive.kind, primitive.name, primitive.parameters, nullable=True)


def is_optional(type_: Type) -> bool:
    """Return whether a type is an optional type."""
    return type_.kind is Kind.OPAQUE and type_.name == "optional_type"


LIST = list_of(DYN)
MAP = map_of(DYN, DYN)
OPTIONAL = optional_of(DYN)
