"""
Estimates of the cost of an expression without evaluating it; see cel-go, C{checker/cost.go}.

Sizes come from literals, from the estimators of operators and functions, and from the caller, who derives the sizes of
variables and their fields from a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from kubetwist.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
)
from kubetwist.cel.checker import Checked
from kubetwist.cel.estimates import (
    LIST_CREATE_COST,
    MAP_CREATE_COST,
    MAX,
    ONE,
    REGEX_LENGTH_FACTOR,
    STRING_TRAVERSAL_FACTOR,
    STRUCT_CREATE_COST,
    UNKNOWN,
    CallEstimate,
    CostModel,
    Estimate,
    fixed,
)
from kubetwist.cel.functions import Overload
from kubetwist.cel.types import Kind, Type, is_optional
from kubetwist.cel.values import MISSING, Value

Path = tuple[str, ...]
#: Returns the size of the value at a path with a type, or C{None} if it is unknown.
SizeOf = Callable[[Path, Type], Estimate | None]

_NOTHING: Final = fixed(0)
_SCALARS: Final = frozenset({Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT})
_SELECTABLE: Final = frozenset({Kind.MAP, Kind.STRUCT, Kind.TYPE_PARAM})
_ACCUMULATORS: Final = frozenset({"@result", "__result__"})
_COMPARISONS: Final = frozenset(
    {
        "equals",
        "not_equals",
        *(
            f"{word}_{type_}"
            for word in ("less", "greater", "less_equals", "greater_equals")
            for type_ in ("string", "bytes")
        ),
    }
)


def estimate(checked: Checked, model: CostModel | None, size_of: SizeOf | None) -> Estimate:
    """Return the estimated cost of an evaluation."""

    def known_size(path: Path, type_: Type) -> Estimate | None:
        return size_of(path, type_) if path and size_of is not None else None

    return _Coster(checked, model, known_size).cost(checked.root)


@frozen
class _EntrySize:
    """Estimated sizes of the keys and values of a list or map."""

    container: Kind
    key: Estimate
    value: Estimate

    def union(self, other: _EntrySize | None) -> _EntrySize | None:
        if other is None:
            return None
        return _EntrySize(self.container, self.key.union(other.key), self.value.union(other.value))


@frozen
class _Variable:
    """A comprehension variable."""

    path: Path
    size: Estimate | None
    entry: _EntrySize | None


@frozen
class _Node:
    """L{kubetwist.cel.estimates.AstNode}."""

    path: Path | None
    type: Type
    expr: Expr | None
    computed: Estimate | None
    size_of: SizeOf

    @property
    def literal(self) -> Value:
        return self.expr.value if isinstance(self.expr, Literal) else MISSING

    @property
    def computed_size(self) -> Estimate | None:
        return self.computed if self.computed is not None else self.size_of(self.path or (), self.type)

    @property
    def size(self) -> Estimate:
        known_size = self.computed_size
        return UNKNOWN if known_size is None else known_size

    def element(self) -> _Node | None:
        if not self.type.parameters:
            return None
        path = None if self.path is None else (*self.path, "@items")
        return _Node(path, self.type.parameters[0], None, None, self.size_of)


class _Coster:
    """Cost estimator of one expression."""

    def __init__(self, checked: Checked, model: CostModel | None, size_of: SizeOf) -> None:
        self._checked = checked
        self._model = model
        self._size_of = size_of
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Estimate] = {}
        self._entries: dict[int, _EntrySize] = {}
        self._variables: dict[str, list[_Variable]] = {}

    def cost(self, expr: Expr) -> Estimate:
        if isinstance(expr, Literal):
            return _NOTHING
        if isinstance(expr, Ident) or (expr.id in self._checked.names and isinstance(expr, Select)):
            return self._ident(expr)
        if isinstance(expr, Select):
            return self._select(expr)
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, ListExpr):
            return self._list(expr)
        if isinstance(expr, MapExpr):
            return self._map(expr)
        if isinstance(expr, StructExpr):
            total = fixed(STRUCT_CREATE_COST)
            for entry in expr.entries:
                total = total.add(self.cost(entry.value))
            return total
        assert isinstance(expr, Comprehension)
        return self._binding(expr) if self._is_binding(expr) else self._comprehension(expr)

    # Paths and sizes

    def _type(self, expr: Expr) -> Type:
        return self._checked.types[expr.id]

    def _name(self, expr: Expr) -> str:
        return self._checked.names[expr.id].name

    def _variable(self, expr: Expr) -> _Variable | None:
        if not isinstance(expr, Ident):
            return None
        stack = self._variables.get(self._name(expr))
        return stack[-1] if stack else None

    def _path(self, expr: Expr) -> Path:
        variable = self._variable(expr)
        return self._paths.get(expr.id, ()) if variable is None else variable.path

    def _size(self, expr: Expr) -> Estimate | None:
        known_size = self._sizes.get(expr.id)
        if known_size is not None:
            return known_size
        known_size = _literal_size(expr)
        if known_size is not None:
            return known_size
        type_ = self._type(expr)
        known_size = self._size_of(self._path(expr), type_)
        if known_size is not None:
            self._sizes[expr.id] = known_size
            return known_size
        if _is_scalar(type_):
            return ONE
        variable = self._variable(expr)
        return None if variable is None else variable.size

    def _size_or_unknown(self, expr: Expr) -> Estimate:
        known_size = self._size(expr)
        return UNKNOWN if known_size is None else known_size

    def _entry_size(self, expr: Expr) -> _EntrySize | None:
        entry_size = self._entries.get(expr.id)
        if entry_size is not None:
            return entry_size
        variable = self._variable(expr)
        return None if variable is None else variable.entry

    def _set_entry_size(self, expr: Expr, entry: _EntrySize | None) -> None:
        if entry is not None:
            self._entries[expr.id] = entry

    def _set_size(self, expr: Expr, size: Estimate | None) -> None:
        if size is not None:
            self._sizes[expr.id] = size

    def _node(self, expr: Expr) -> _Node:
        path: Path | None = self._path(expr)
        if not path or path[0] in _ACCUMULATORS:
            path = None
        return _Node(path, self._type(expr), expr, self._size(expr), self._size_of)

    # Names and selections

    def _ident(self, expr: Expr) -> Estimate:
        variable = self._variable(expr)
        self._paths[expr.id] = (self._name(expr),) if variable is None else variable.path
        return ONE

    def _select(self, expr: Select) -> Estimate:
        total = self.cost(expr.operand)
        if expr.test_only:
            # Kubernetes sets PresenceTestHasCost to false.
            return total
        if self._type(expr.operand).kind in _SELECTABLE:
            total = total.add(ONE)
        self._paths[expr.id] = (*self._path(expr.operand), expr.field)
        return total

    # Aggregates

    def _list(self, expr: ListExpr) -> Estimate:
        total = fixed(LIST_CREATE_COST)
        size = Estimate(MAX if expr.elements else 0, 0)
        for element in expr.elements:
            total = total.add(self.cost(element))
            size = size.union(self._size_or_unknown(element))
        self._entries[expr.id] = _EntrySize(Kind.LIST, ONE, size)
        return total

    def _map(self, expr: MapExpr) -> Estimate:
        total = fixed(MAP_CREATE_COST)
        keys = values = Estimate(MAX if expr.entries else 0, 0)
        for entry in expr.entries:
            total = total.add(self.cost(entry.key)).add(self.cost(entry.value))
            keys = keys.union(self._size_or_unknown(entry.key))
            values = values.union(self._size_or_unknown(entry.value))
        self._entries[expr.id] = _EntrySize(Kind.MAP, keys, values)
        return total

    # Comprehensions

    @staticmethod
    def _is_binding(expr: Comprehension) -> bool:
        return (
            isinstance(expr.iter_range, ListExpr)
            and not expr.iter_range.elements
            and isinstance(expr.condition, Literal)
            and expr.condition.value is False
            and expr.accu_var != "__result__"
        )

    def _push(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def _bind(self, expr: Comprehension) -> None:
        value = expr.accu_init
        variable = _Variable(self._path(value), self._size(value), self._entry_size(value))
        self._push(expr.accu_var, variable)

    def _binding(self, expr: Comprehension) -> Estimate:
        total = self.cost(expr.iter_range).add(self.cost(expr.accu_init))
        self._bind(expr)
        total = total.add(self.cost(expr.result))
        result_size, result_entry = self._size(expr.result), self._entry_size(expr.result)
        self._variables[expr.accu_var].pop()
        self._set_size(expr, result_size)
        self._set_entry_size(expr, result_entry)
        return total

    def _comprehension(self, expr: Comprehension) -> Estimate:
        total = self.cost(expr.iter_range).add(self.cost(expr.accu_init))
        self._bind(expr)
        self._push_iterated(expr)
        condition, step = self.cost(expr.condition), self.cost(expr.step)
        self._variables[expr.iter_var].pop()
        if expr.iter_var2:
            self._variables[expr.iter_var2].pop()
        total = total.add(self.cost(expr.result))
        self._variables[expr.accu_var].pop()
        count = self._size_or_unknown(expr.iter_range)
        if isinstance(expr.accu_init, Literal):
            self._set_size(expr, self._size(expr.accu_init))
        elif isinstance(expr.accu_init, (ListExpr, MapExpr)):
            self._set_size(expr, count)
            self._set_entry_size(expr, self._entry_size(expr.step))
        return total.add(count.multiply(step.add(condition)))

    def _push_iterated(self, expr: Comprehension) -> None:
        entry = self._entry_size(expr.iter_range)
        kind = self._type(expr.iter_range).kind if entry is None else entry.container
        path = self._path(expr.iter_range)
        key = None if entry is None else entry.key
        value = None if entry is None else entry.value
        is_list = kind is Kind.LIST
        if expr.iter_var2:
            self._push(expr.iter_var, _Variable((*path, "@indices" if is_list else "@keys"), key, None))
            self._push(expr.iter_var2, _Variable((*path, "@items" if is_list else "@values"), value, None))
        elif is_list:
            self._push(expr.iter_var, _Variable((*path, "@items"), value, None))
        else:
            self._push(expr.iter_var, _Variable((*path, "@keys"), key, None))

    # Calls

    def _call(self, expr: Call) -> Estimate:
        if expr.function == "_?._":
            return self._optional_select(expr)
        if expr.function == "dyn":
            cost = self.cost(expr.args[0]).add(ONE)
            self._set_size(expr, self._size(expr.args[0]))
            self._set_entry_size(expr, self._entry_size(expr.args[0]))
            return cost
        resolution = self._checked.calls[expr.id]
        costs = [self.cost(argument) for argument in expr.args]
        nodes = [self._node(argument) for argument in expr.args]
        total, target = _NOTHING, None
        if resolution.member and expr.target is not None:
            total = self.cost(expr.target)
            target = self._node(expr.target)
        call: Estimate | None = None
        size: Estimate | None = None
        for overload in resolution.overloads:
            call_estimate = self._overload(expr, resolution.function, overload, target, nodes, costs)
            call = call_estimate.cost if call is None else call.union(call_estimate.cost)
            if call_estimate.size is not None:
                size = call_estimate.size if size is None else size.union(call_estimate.size)
            size = self._indexed(expr, overload.id, size)
            if size is None:
                size = self._size(expr)
        self._set_size(expr, size)
        return total if call is None else total.add(call)

    def _optional_select(self, expr: Call) -> Estimate:
        """Estimate C{a.?b} as an ordinary call."""
        operand = self.cost(expr.args[0])
        self._set_size(expr, self._size(expr))
        return operand.add(ONE)

    def _indexed(self, expr: Call, overload: str, size: Estimate | None) -> Estimate | None:
        if overload not in ("index_list", "index_map"):
            return size
        entry = self._entry_size(expr.args[0])
        self._paths[expr.id] = (
            *self._path(expr.args[0]),
            "@items" if overload == "index_list" else "@values",
        )
        return None if entry is None else entry.value

    def _overload(
        self,
        expr: Call,
        function: str,
        overload: Overload,
        target: _Node | None,
        args: Sequence[_Node],
        costs: Sequence[Estimate],
    ) -> CallEstimate:
        """Return the estimated cost of a call of one overload, arguments included."""
        arguments = _NOTHING
        for cost in costs:
            arguments = arguments.add(cost)
        library_estimate = overload.estimator(target, args) if overload.estimator is not None else None
        if library_estimate is None and self._model is not None:
            library_estimate = self._model.estimate_call_cost(function, overload.id, target, args)
        if library_estimate is not None:
            return CallEstimate(library_estimate.cost.add(arguments), library_estimate.size)
        if overload.id in ("logical_or", "logical_and"):
            left, right = costs
            return CallEstimate(Estimate(left.min, left.add(right).max))
        if overload.id == "conditional":
            return self._conditional(expr, args, costs)
        call_estimate = self._builtin(expr, overload.id, target, args)
        return CallEstimate(call_estimate.cost.add(arguments), call_estimate.size)

    def _conditional(self, expr: Call, args: Sequence[_Node], costs: Sequence[Estimate]) -> CallEstimate:
        true, false = expr.args[1], expr.args[2]
        first, second = self._entry_size(true), self._entry_size(false)
        self._set_entry_size(expr, None if first is None else first.union(second))
        size = _computed(args[1]).union(_computed(args[2]))
        return CallEstimate(costs[0].add(costs[1].union(costs[2])), size)

    def _builtin(self, expr: Call, overload: str, target: _Node | None, args: Sequence[_Node]) -> CallEstimate:
        """Return the default cost of a call without its arguments."""
        if overload == "string_format" and target is not None:
            return CallEstimate(_computed(target).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
        if overload == "string_to_bytes":
            size = _computed(args[0])
            # A character has up to four bytes.
            return CallEstimate(
                size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR), Estimate(size.min, (size.max * 4) & MAX)
            )
        if overload == "bytes_to_string":
            size = _computed(args[0])
            return CallEstimate(
                size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR), Estimate(size.min // 4, size.max)
            )
        if overload == "strings_quote":
            size = _computed(args[0])
            quoted = Estimate((size.min + 2) & MAX, (size.max * 2 + 2) & MAX)
            return CallEstimate(size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR), quoted)
        if overload in ("starts_with_string", "ends_with_string"):
            return CallEstimate(_computed(args[0]).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
        if overload == "in_list":
            return CallEstimate(_computed(args[1]).multiply_by_cost_factor(1))
        if overload == "matches_string" and target is not None:
            text = _computed(target).add(ONE).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)
            return CallEstimate(text.multiply(_computed(args[0]).multiply_by_cost_factor(REGEX_LENGTH_FACTOR)))
        if overload == "contains_string" and target is not None:
            text = _computed(target).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)
            return CallEstimate(text.multiply(_computed(args[0]).multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR)))
        if overload in ("add_string", "add_bytes", "add_list"):
            return self._addition(expr, overload, args)
        if overload in _COMPARISONS:
            smallest = min(_computed(args[0]).max, _computed(args[1]).max)
            compared = Estimate(1 if smallest > 0 else 0, smallest)
            return CallEstimate(compared.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR))
        return CallEstimate(ONE)

    def _addition(self, expr: Call, overload: str, args: Sequence[_Node]) -> CallEstimate:
        size = _computed(args[0]).add(_computed(args[1]))
        first, second = self._entry_size(expr.args[0]), self._entry_size(expr.args[1])
        self._set_entry_size(expr, None if first is None else first.union(second))
        if overload == "add_list":
            return CallEstimate(ONE, size)
        return CallEstimate(size.multiply_by_cost_factor(STRING_TRAVERSAL_FACTOR), size)


def _computed(node: _Node) -> Estimate:
    """Return the size of an argument without the sizes of variables."""
    return UNKNOWN if node.computed is None else node.computed


def _literal_size(expr: Expr) -> Estimate | None:
    if isinstance(expr, Literal):
        return fixed(len(expr.value)) if isinstance(expr.value, (str, bytes)) else ONE
    if isinstance(expr, ListExpr):
        return fixed(len(expr.elements))
    if isinstance(expr, MapExpr):
        return fixed(len(expr.entries))
    return None


def _is_scalar(type_: Type) -> bool:
    return type_.kind in _SCALARS or (is_optional(type_) and _is_scalar(type_.parameters[0]))
