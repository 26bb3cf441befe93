"""Inspection of parsed expressions."""

from __future__ import annotations

from kubetwist.cel.ast import Call, Expr, Ident, Literal, Select, walk


def _selection(node: Expr) -> tuple[Expr, str] | None:
    """Return the operand and the field if a node is C{a.b} or C{a.?b}."""
    if isinstance(node, Select):
        return node.operand, node.field
    if isinstance(node, Call) and node.function == "_?._" and len(node.args) == 2:
        name = node.args[1]
        if isinstance(name, Literal) and isinstance(name.value, str):
            return node.args[0], name.value
    return None


def selected_fields(root: Expr) -> set[str]:
    """Return the names of all selected fields of any operand."""
    selections = map(_selection, walk(root))
    return {selection[1] for selection in selections if selection is not None}


def selects(root: Expr, variable: str, field: str) -> bool:
    """Return whether a field of a variable is selected anywhere."""
    for node in walk(root):
        selection = _selection(node)
        if selection is not None and selection[1] == field:
            operand = selection[0]
            if isinstance(operand, Ident) and operand.name == variable:
                return True
    return False
