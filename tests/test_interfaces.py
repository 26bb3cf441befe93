"""Tests for L{kubetwist.interfaces}: implementations have the stated parameters and attributes."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import Interface, implementedBy
from zope.interface.interface import InterfaceClass, Method

import kubetwist
from kubetwist import interfaces
from kubetwist.admission import (
    chain,
)
from kubetwist.admission import (
    plugins as selection,
)

#: Parameters of implementations that are not part of an interface: L{Store.update} is also called by subresources.
ADDITIONAL = {("update", "rules")}
#: Attributes that plugins need not have.
OPTIONAL = {interfaces.IAdmissionPluginLimits, interfaces.IPlacedAdmissionPluginFactory}


@cache
def classes() -> list[type]:
    """Return all classes of the package that can be imported without optional requirements."""
    found: dict[type, None] = {}
    for one in pkgutil.walk_packages(kubetwist.__path__, "kubetwist."):
        if one.name.rpartition(".")[2] == "__main__":
            continue
        try:
            module = import_module(one.name)
        except ImportError:
            continue
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == one.name:
                found[value] = None
    return list(found)


def stated(interface: InterfaceClass) -> dict[str, tuple[list[tuple[str, bool]], set[str]]]:
    """
    Return the methods of an interface, without those of its bases.

    @return: By name, the positional parameters with whether they are optional, and the names of the keyword-only ones.
    """
    found = {}
    for node in ast.walk(ast.parse(Path(interfaces.__file__).read_text())):
        if isinstance(node, ast.ClassDef) and node.name == interface.__name__:
            for one in node.body:
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                    names = [parameter.arg for parameter in one.args.args]
                    required = len(names) - len(one.args.defaults)
                    positional = [(name, number >= required) for number, name in enumerate(names)]
                    found[one.name] = positional, {parameter.arg for parameter in one.args.kwonlyargs}
    return found


def implementations() -> Iterator[tuple[type, InterfaceClass]]:
    """Return each class with each interface of the package that it implements."""
    for one in classes():
        for interface in implementedBy(one).flattened():
            if interface is not Interface and interface.__module__ == interfaces.__name__:
                yield one, interface


def signature_problems(function: object, positional: list[tuple[str, bool]], keyword_only: set[str]) -> Iterator[str]:
    """
    Compare the parameters of a method with those that its interface states.

    @param positional: The positional parameters of the interface, with whether they are optional.
    @param keyword_only: The names of the keyword-only ones.
    """
    assert callable(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if {one.kind for one in parameters} & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        yield "takes any arguments"
        return
    given = [one for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    named = {one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}
    if [name for name, _ in positional] != [one.name for one in given[: len(positional)]]:
        yield f"has {[one.name for one in given]} instead of {[name for name, _ in positional]}"
        return
    for (name, optional), one in zip(positional, given, strict=False):
        if optional and one.default is one.empty:
            yield f"requires {name}"
    yield from (f"lacks {name}" for name in keyword_only - named)
    further = {one.name for one in given[len(positional) :]} | (named - keyword_only)
    name = getattr(function, "__name__", "")
    yield from (f"also has {other}" for other in further if (name, other) not in ADDITIONAL)


class InterfaceTests(SynchronousTestCase):
    """Implementations and interfaces agree."""

    def test_signatures(self) -> None:
        """Each method of an interface has exactly the parameters in all implementations that the interface states."""
        problems = []
        seen = 0
        for one, interface in implementations():
            for name, (positional, keyword_only) in stated(interface).items():
                function = inspect.unwrap(getattr(one, name, None) or (lambda: None))
                if not hasattr(one, name):
                    problems.append(f"{one.__module__}.{one.__name__} lacks {name} of {interface.__name__}")
                    continue
                seen += 1
                for problem in signature_problems(function, positional, keyword_only):
                    problems.append(f"{one.__module__}.{one.__name__}.{name} {problem}")
        self.assertEqual([], problems)
        self.assertGreater(seen, 300)

    def test_attributes(self) -> None:
        """Each attribute of an interface is an attribute of all implementations."""
        problems = []
        for one, interface in implementations():
            for name, described in interface.namesAndDescriptions():
                if isinstance(described, Method) or self.has(one, name):
                    continue
                problems.append(f"{one.__module__}.{one.__name__} lacks {name} of {interface.__name__}")
        self.assertEqual([], problems)

    def has(self, one: type, name: str) -> bool:
        """Return whether instances of a class have an attribute: in the class, as a field, or set by a method."""
        for base in one.__mro__[:-1]:
            if name in vars(base) or name in inspect.get_annotations(base):
                return True
            is_ours = base.__module__.startswith("kubetwist")
            if is_ours and re.search(rf"self\.{name}\b[^=\n]*=", inspect.getsource(base)):
                return True
        return False

    def test_optional(self) -> None:
        """Attributes that are looked up on plugins and their factories are declared by an interface."""
        names = {name for interface in OPTIONAL for name in interface}
        for module, variable in ((chain, "plugin"), (selection, r"factories\[name\]")):
            text = inspect.getsource(module)
            looked_up = set(re.findall(rf'getattr\({variable}, "(\w+)"', text))
            self.assertNotEqual(set(), looked_up)
            self.assertEqual(set(), looked_up - names)

    def test_types(self) -> None:
        """The interfaces state the types of all parameters and results."""
        for node in ast.walk(ast.parse(Path(interfaces.__file__).read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.args, *node.args.kwonlyargs]
                self.assertEqual([], [one.arg for one in arguments if one.annotation is None], node.name)
                self.assertIsNotNone(node.returns, node.name)
