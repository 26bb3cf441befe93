"""
Tests for F{docs/reference/api.md}: the page lists what third-party packages may import.

The listed names exist and are documented, the examples and the code in the pages import listed names only, and modules
with an underscore are imported within their own packages only.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.interface import InterfaceClass

import kubetwist
from kubetwist import interfaces

from .checkout import CHECKOUT

SOURCES = Path(kubetwist.__file__).parent
PAGE = CHECKOUT / "docs" / "reference" / "api.md"


@cache
def read_page() -> dict[str, list[str]]:
    """Return the listed names of each module."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in PAGE.read_text("utf-8").splitlines():
        heading = re.fullmatch(r"### `([\w.]+)`", line)
        row = re.fullmatch(r"\| `(\w+)` \| (.+) \|", line)
        if heading:
            names = found[heading[1]] = []
        elif row:
            names.append(row[1])
    return found


def imports(tree: ast.AST, package: str = "") -> Iterator[tuple[str, str]]:
    """
    Return the imports of a module: the names of modules, and of what is imported from them.

    @param package: The package of the module, for relative imports.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parts = package.split(".")
                source = ".".join([*parts[: len(parts) - node.level + 1], *([source] if source else [])])
            yield from ((source, one.name) for one in node.names)


@cache
def modules() -> dict[str, Path]:
    """Return the modules of the package by name."""
    found = {}
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def importers() -> dict[str, set[str]]:
    """Return the names of the modules that import a module, for all modules of the package."""
    found: dict[str, set[str]] = {name: set() for name in modules()}
    for name, path in modules().items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(path.read_text("utf-8"))
        for source, imported in imports(tree, package):
            for one in (source, f"{source}.{imported}"):
                if one in found and one != name:
                    found[one].add(name)
        # Plugins are named by strings: C{"kubetwist.authentication.oidc:make"}.
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                module = node.value.partition(":")[0]
                if module in found and module != name:
                    found[module].add(name)
    return found


@cache
def named_in_plugins() -> set[str]:
    """Return the modules that are named by the drop-ins of Twisted and by the entry points."""
    texts = [path.read_text("utf-8") for path in (SOURCES.parent / "twisted" / "plugins").glob("kube*.py")]
    return set(re.findall(r"\bkubetwist(?:\.\w+)+", "\n".join(texts)))


def is_private(name: str) -> bool:
    """Return whether a module or one of its packages begins with an underscore."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def unlisted(code: str) -> list[str]:
    """Return what code imports from the package that the page does not list."""
    page = read_page()
    found = []
    for source, name in imports(ast.parse(code)):
        if source.split(".")[0] != "kubetwist":
            continue
        if source in page and (not name or name in page[source]):
            continue
        if f"{source}.{name}" in page:
            continue
        found.append(f"{source}.{name}" if name else source)
    return found


class PageTests(SynchronousTestCase):
    """The page about the public API."""

    def test_names(self) -> None:
        """Each listed name exists, is listed once, and has no underscore."""
        for module, names in read_page().items():
            self.assertFalse(is_private(module), module)
            self.assertEqual(len(set(names)), len(names), module)
            found = import_module(module)
            self.assertEqual([], [name for name in names if not hasattr(found, name) or name.startswith("_")], module)

    def test_docstrings(self) -> None:
        """Each listed module, class and function has a docstring."""
        for module, names in read_page().items():
            found = import_module(module)
            self.assertTrue(found.__doc__, module)
            for name in names:
                value = getattr(found, name)
                if inspect.isclass(value) or inspect.isfunction(value) or isinstance(value, InterfaceClass):
                    self.assertTrue(value.__doc__, f"{module}.{name}")

    def test_interfaces(self) -> None:
        """All interfaces are listed."""
        values = [value for value in vars(interfaces).values() if isinstance(value, InterfaceClass)]
        names = {value.__name__ for value in values if value.__module__ == interfaces.__name__}
        self.assertEqual(names, set(read_page()["kubetwist.interfaces"]))

    def test_exported(self) -> None:
        """What a package exports is what the page lists for it."""
        for module, names in read_page().items():
            exported = getattr(import_module(module), "__all__", None)
            if exported is not None:
                self.assertEqual(sorted(exported), sorted(names), module)


class UseTests(SynchronousTestCase):
    """Examples and pages import listed names only."""

    def check(self, texts: Iterable[tuple[str, str]]) -> None:
        """Check pieces of code for unlisted imports."""
        found = {place: names for place, code in texts if (names := unlisted(code))}
        self.assertEqual({}, found)

    def test_examples(self) -> None:
        """The examples import what is listed."""
        paths = sorted((CHECKOUT / "examples").rglob("*.py"))
        self.assertNotEqual([], paths)
        self.check((str(path), path.read_text("utf-8")) for path in paths)

    def test_pages(self) -> None:
        """The code in the pages imports what is listed."""
        blocks = [
            (path.name, code)
            for path in sorted((CHECKOUT / "docs").rglob("*.md"))
            for code in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
        ]
        self.assertNotEqual([], blocks)
        self.check(blocks)

    def test_mentioned(self) -> None:
        """The modules that the pages for plugin authors mention are listed."""
        modules_of_page = set(read_page())
        for page in ("plugins.md", "testing.md", "extension.md", "policies.md", "conversion.md"):
            text = (CHECKOUT / "docs" / page).read_text("utf-8")
            for name in re.findall(r"`(kubetwist(?:\.[a-z_]+)+)", text):
                self.assertTrue(any(f"{one}.".startswith(f"{name}.") for one in modules_of_page), f"{page}: {name}")

    def test_files(self) -> None:
        """The modules that the architecture page names exist."""
        text = (CHECKOUT / "docs" / "contributing" / "architecture.md").read_text("utf-8")
        paths = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py")}
        names = {path.rpartition("/")[2] for path in paths}
        missing = []
        for name in set(re.findall(r"`((?:kubetwist/)?[\w/]+\.py)`", text)):
            path = name.removeprefix("kubetwist/")
            if path.startswith(("tests/", "benchmarks/", "twisted/", "a/")):
                continue
            if not (path in names if "/" not in path else any(f"/{one}".endswith(f"/{path}") for one in paths)):
                missing.append(name)
        self.assertEqual([], sorted(missing))


class PrivateModuleTests(SynchronousTestCase):
    """Modules with an underscore."""

    def test_borders(self) -> None:
        """A module with an underscore is imported by modules of its package only."""
        problems = []
        for name, users in importers().items():
            if not is_private(name):
                continue
            parts = name.split(".")
            level = next(number for number, part in enumerate(parts) if part.startswith("_"))
            package = ".".join(parts[:level])
            problems += [f"{user} imports {name}" for user in users if not f"{user}.".startswith(f"{package}.")]
        self.assertEqual([], sorted(problems))

    def test_internal(self) -> None:
        """In packages with public modules, modules for their own package only are listed or have an underscore."""
        text = PAGE.read_text("utf-8").partition("In the packages ")[2].partition(" are public")[0]
        packages = re.findall(r"`([\w.]+)`", text)
        self.assertIn("admission", packages)
        problems = []
        for name, users in importers().items():
            if (
                not any(name.startswith(f"kubetwist.{one}.") for one in packages)
                or modules()[name].name == "__init__.py"
            ):
                continue
            if is_private(name) or name in read_page():
                continue
            package = name.rpartition(".")[0]
            own = all(f"{user}.".startswith(f"{package}.") for user in users)
            if own and name not in named_in_plugins():
                problems.append(name)
        self.assertEqual([], sorted(problems))
