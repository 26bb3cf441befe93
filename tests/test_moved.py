"""Tests for L{kubetwist._moved}: modules are found by the names that they had in the previous release."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist import _moved


class TableTests(SynchronousTestCase):
    """Every line of the table is true."""

    def test_lines(self) -> None:
        """Lines are sorted, have two names, and name public modules that were renamed."""
        text = Path(_moved.__file__).with_suffix(".txt").read_text()
        lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(sorted(lines), lines)
        for line in lines:
            self.assertEqual(2, len(line), line)
            self.assertNotIn("_", {part[0] for part in line[0].split(".")})

    def test_modules(self) -> None:
        """There is a module with each new name, and none with an old name."""
        folder = Path(kubetwist.__file__).parent
        for old, new in _moved.read_table().items():
            path = folder.joinpath(*new.split(".")[1:])
            self.assertTrue(path.with_suffix(".py").exists() or (path / "__init__.py").exists(), new)
            path = folder.joinpath(*old.split(".")[1:])
            self.assertFalse(path.with_suffix(".py").exists() or (path / "__init__.py").exists(), old)

    def test_found(self) -> None:
        """A specification is found for each old name, with one warning that has the new name."""
        for old, new in _moved.read_table().items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.assertIsNotNone(_moved.find_spec(old), old)
            self.assertEqual(
                [f"{old} was renamed {new}; the old name will be removed in kubetwist 0.3"],
                [str(one.message) for one in caught],
            )


class ImportTests(SynchronousTestCase):
    """Imports of old names give the modules themselves."""

    def setUp(self) -> None:
        """Rename modules, and forget the old names afterwards."""
        table = {
            "kubetwist.api.instants": "kubetwist.api.times",
            "kubetwist.oldplace": "kubetwist.api",
            "kubetwist.oldplace.instants": "kubetwist.api.times",
            "kubetwist.split.deeper.instants": "kubetwist.api.times",
        }
        _moved.read_packages.cache_clear()
        self.patch(_moved, "read_table", lambda: table)
        self.addCleanup(self.forget, set(sys.modules))

    def forget(self, before: set[str]) -> None:
        """Remove what was imported by old names."""
        _moved.read_packages.cache_clear()
        for name in set(sys.modules) - before:
            if "instants" in name or "oldplace" in name or "split" in name:
                del sys.modules[name]
                parent, _, child = name.rpartition(".")
                vars(sys.modules.get(parent, kubetwist)).pop(child, None)

    def imported(self, name: str) -> tuple[object, list[str]]:
        """Import a module, and return it with the warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = import_module(name)
        return module, [str(one.message).partition(";")[0] for one in caught]

    def test_module(self) -> None:
        """A renamed module is the module with the new name, which keeps its name and specification."""
        new = import_module("kubetwist.api.times")
        spec = new.__spec__
        module, texts = self.imported("kubetwist.api.instants")
        self.assertIs(new, module)
        self.assertIs(spec, new.__spec__)
        self.assertEqual("kubetwist.api.times", new.__name__)
        self.assertEqual(["kubetwist.api.instants was renamed kubetwist.api.times"], texts)

    def test_once(self) -> None:
        """The second import of an old name emits no warning."""
        self.imported("kubetwist.api.instants")
        self.assertEqual([], self.imported("kubetwist.api.instants")[1])

    def test_package(self) -> None:
        """The modules of a renamed package are found, and are not loaded twice."""
        module, texts = self.imported("kubetwist.oldplace.instants")
        self.assertIs(import_module("kubetwist.api.times"), module)
        self.assertEqual(2, len(texts))
        self.assertIsNone(find_spec("kubetwist.oldplace.times"))

    def test_names_of_package(self) -> None:
        """A renamed package has the names of the new one."""
        package, _ = self.imported("kubetwist.oldplace")
        self.assertEqual(import_module("kubetwist.api").__doc__, getattr(package, "__getattr__")("__doc__"))  # noqa: B009

    def test_removed_package(self) -> None:
        """Modules of a package without a successor are found, and the package itself causes no warning."""
        module, texts = self.imported("kubetwist.split.deeper.instants")
        self.assertIs(import_module("kubetwist.api.times"), module)
        self.assertEqual(1, len(texts))

    def test_place(self) -> None:
        """The warning is reported for the line with the import."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            from kubetwist.oldplace import instants  # type: ignore[import-not-found]  # noqa: F401
        self.assertEqual({__file__}, {one.filename for one in caught})

    def test_unknown(self) -> None:
        """Names that never existed are not found."""
        self.assertRaises(ModuleNotFoundError, import_module, "kubetwist.nowhere")
        self.assertRaises(ModuleNotFoundError, import_module, "kubetwist.api.nowhere")
