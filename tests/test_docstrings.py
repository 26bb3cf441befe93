"""Tests of the docstrings of kubetwist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import kubetwist

PACKAGE = Path(kubetwist.__file__).parent
#: Functions with as many parameters describe each, or refer to another docstring.
MANY_PARAMETERS = 4


def public_functions(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public functions of a module, and the public methods of its public classes."""
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public_functions(child)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
            yield child


def parameter_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the parameters, without C{self} and C{cls}."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def describes_parameters(docstring: str) -> bool:
    """Return whether a docstring describes parameters, refers to another docstring, or has an explanation in prose."""
    return "@param" in docstring or "L{" in docstring or len(docstring.strip().splitlines()) > 2


class DocstringTests(SynchronousTestCase):
    """Docstrings of public functions."""

    def test_parameters(self) -> None:
        """A public function with four or more parameters has more than one line, or refers to its interface."""
        undescribed = []
        for path in sorted(PACKAGE.rglob("*.py")):
            for function in public_functions(ast.parse(path.read_text("utf-8"))):
                if any("overload" in ast.unparse(decorator) for decorator in function.decorator_list):
                    continue
                if len(parameter_names(function)) < MANY_PARAMETERS:
                    continue
                if not describes_parameters(ast.get_docstring(function) or ""):
                    undescribed.append(f"{path.relative_to(PACKAGE)}:{function.lineno}: {function.name}")
        self.assertEqual([], undescribed)
