"""
Tests for the tree of the tests, which mirrors the tree of kubetwist.

The tests of F{kubetwist/a/b.py} are in F{tests/a/test_b.py}, or by subject in the folder F{tests/a/b/}. A leading
underscore of a module is dropped. F{tested_elsewhere.txt} lists the exceptions.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from twisted.trial.unittest import SynchronousTestCase

import kubetwist

TESTS = Path(__file__).parent
PACKAGE = Path(kubetwist.__file__).parent
TABLE = TESTS / "tested_elsewhere.txt"
#: Folders whose tests have subjects of their own: they run clients against whole servers.
FREE = ("tests/e2e/", "tests/pytest_twisted/")


class Row(NamedTuple):
    """One exception."""

    #: The path of a module without tests of its name, or of tests that have no module's name.
    path: str
    #: The test that covers the module; C{"-"} if there is nothing to cover, and for tests.
    test: str
    reason: str


def parse(text: str) -> list[Row]:
    """Read the table: paths and the reason, separated by tabs; lines that begin with C{#} are comments."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 3 or not all(cells):
            raise ValueError(f"line {number}: want a path, a test and a reason: {line!r}")
        rows.append(Row(*cells))
    return rows


def has_code(source: str) -> bool:
    """Return whether a module is more than a docstring."""
    return len(ast.parse(source).body) > 1


def modules() -> set[str]:
    """Return the paths of all modules with code."""
    return {
        f"kubetwist/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE or path.name != "__init__.py"
        if path.name != "__init__.py" or has_code(path.read_text("utf-8"))
    }


def tests() -> set[str]:
    """Return the paths of all modules of tests."""
    return {f"tests/{path.relative_to(TESTS).as_posix()}" for path in TESTS.rglob("test_*.py")}


def places(module: str) -> tuple[str, str]:
    """Return the path of the tests of a module's name, and the prefix of the folder with its name."""
    parts = [part.lstrip("_") for part in module.removesuffix(".py").removesuffix("/__init__").split("/")[1:]]
    return "/".join(["tests", *parts[:-1], f"test_{parts[-1]}.py"]), "/".join(["tests", *parts, "test_"])


class TreeTests(SynchronousTestCase):
    """Modules and their tests."""

    def setUp(self) -> None:
        """Read both trees and the table."""
        self.modules = modules()
        self.tests = tests()
        rows = parse(TABLE.read_text("utf-8"))
        self.listed = {row.path: row for row in rows}
        self.assertEqual(len(self.listed), len(rows), "a path is listed twice")
        self.named: dict[str, list[str]] = {}
        for module in self.modules:
            file, prefix = places(module)
            own = [
                test
                for test in self.tests
                if test == file or (test.startswith(prefix) and "/" not in test[len(prefix) :])
            ]
            if own:
                self.named[module] = own

    def test_every_module_has_tests(self) -> None:
        """Every module has tests of its name, or is listed with the reason."""
        missing = sorted(self.modules - self.named.keys() - self.listed.keys())
        self.assertEqual([], missing, f"no {places(missing[0])[0]}" if missing else "")

    def test_every_test_has_a_module(self) -> None:
        """Every module of tests has the name of a module, or is listed with the reason."""
        known = {test for own in self.named.values() for test in own} | self.listed.keys()
        free = {test for test in self.tests if test.startswith(FREE)}
        self.assertEqual([], sorted(self.tests - known - free))

    def test_rows_are_needed(self) -> None:
        """A listed path exists, and there are no tests of the name of a listed module."""
        self.assertEqual([], sorted(self.listed.keys() - self.modules - self.tests))
        self.assertEqual([], sorted(self.listed.keys() & self.named.keys()))
        named = {test for own in self.named.values() for test in own}
        self.assertEqual([], sorted(self.listed.keys() & named))

    def test_tests_of_rows(self) -> None:
        """The test that a row names exists."""
        self.assertEqual([], sorted(row.path for row in self.listed.values() if row.test not in {"-", *self.tests}))

    def test_nothing_to_test(self) -> None:
        """A listed module that names no test computes nothing: its functions are signatures."""
        computing = []
        for row in self.listed.values():
            if row.test != "-" or row.path in self.tests:
                continue
            tree = ast.parse((PACKAGE.parent / row.path).read_text("utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
                    not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)) for line in node.body
                ):
                    computing.append(f"{row.path}: {node.name}")
        self.assertEqual([], computing)


class RuleTests(SynchronousTestCase):
    """The rules themselves."""

    def test_places(self) -> None:
        """A test is beside the module in the other tree, without the underscore of a private module."""
        self.assertEqual(("tests/a/test_b.py", "tests/a/b/test_"), places("kubetwist/a/b.py"))
        self.assertEqual(("tests/a/test_b.py", "tests/a/b/test_"), places("kubetwist/a/_b.py"))
        self.assertEqual(("tests/a/test_b.py", "tests/a/b/test_"), places("kubetwist/a/b/__init__.py"))

    def test_parse(self) -> None:
        """A row has three cells; comments and empty lines are skipped."""
        self.assertEqual([Row("a.py", "-", "why")], parse("# comment\n\na.py\t-\twhy\n"))
        self.assertIn("line 2", str(self.assertRaises(ValueError, parse, "a.py\t-\twhy\nb.py\t-\n")))

    def test_has_code(self) -> None:
        """A module that has a docstring only has no code."""
        self.assertFalse(has_code('"""Text."""\n'))
        self.assertTrue(has_code('"""Text."""\n\nfrom .a import b\n'))
