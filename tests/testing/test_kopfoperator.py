"""Tests for L{kubetwist.testing.kopfoperator}: its parts. F{tests/e2e/test_operators.py} runs operators."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import Connection
from kubetwist.testing.kopfoperator import (
    KopfOperator,
    _environment,
    _executed,
    _import,
    _is_file,
    _Log,
    _registering,
    _registries,
    _Watches,
)

CONNECTION = Connection("https://127.0.0.1:1", Path("/kubeconfig"), "", "", "", "")


class Registries:
    """The functions of kopf that choose a registry."""

    OperatorRegistry = list

    def __init__(self) -> None:
        self.default: list[str] = []

    def get_default_registry(self) -> list[str]:
        """Return the registry that decorators use."""
        return self.default

    def set_default_registry(self, registry: list[str]) -> None:
        """Replace it."""
        self.default = registry


class SourceTests(SynchronousTestCase):
    """The code of operators."""

    def setUp(self) -> None:
        """Write a module, which another one imports."""
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        (self.folder / "kubetwist_sibling.py").write_text("VALUE = 7\n")
        self.file = self.folder / "mine.py"
        self.file.write_text("import sys\nfrom kubetwist_sibling import VALUE\nNAME = __name__\n")
        self.addCleanup(sys.modules.pop, "kubetwist_sibling", None)

    def test_kinds(self) -> None:
        """Paths and names that end with .py are files."""
        self.assertEqual([_is_file(one) for one in ("a.py", Path("a"), "a.b", "a")], [True, True, False, False])

    def test_file(self) -> None:
        """A file is executed as a module each time, and can import modules beside it while the operator runs."""
        path, seen = list(sys.path), []
        for _ in range(2):
            with _executed(self.file, 0):
                module = sys.modules["kubetwist_operator_0_mine"]
                seen.append(module)
                self.assertEqual((module.NAME, module.VALUE), (module.__name__, 7))
                self.assertIn(str(self.folder), sys.path)
            self.assertEqual(sys.path, path)
            self.assertNotIn("kubetwist_operator_0_mine", sys.modules)
        self.assertIsNot(*seen)

    def test_missing_file(self) -> None:
        """A file that does not exist is named."""
        context = _executed(self.folder / "missing.py", 0)
        self.assertIn("missing.py", str(self.assertRaises(FileNotFoundError, context.__enter__)))

    def test_broken_file(self) -> None:
        """An exception of a file is raised, and the path is restored."""
        path = list(sys.path)
        self.file.write_text("1 / 0\n")
        self.assertRaises(ZeroDivisionError, _executed(self.file, 0).__enter__)
        self.assertEqual(sys.path, path)

    def test_module(self) -> None:
        """A module has a registry, also for the next operator; one that the test has imported has the default one."""
        kopf: Any = Registries()
        default = kopf.default
        self.patch(sys, "path", [str(self.folder), *sys.path])
        self.addCleanup(_registries.pop, "kubetwist_sibling", None)
        registry = _import(kopf, "kubetwist_sibling")
        self.assertIsNot(registry, default)
        self.assertIs(_import(kopf, "kubetwist_sibling"), registry)
        self.assertIs(kopf.default, default)
        self.assertIs(_import(kopf, "os"), default)

    def test_registering(self) -> None:
        """The default registry is another one for a while, also after an error."""
        kopf: Any = Registries()
        default, mine = kopf.default, ["mine"]
        with self.assertRaises(KeyError), _registering(kopf, mine):  # type: ignore[attr-defined]
            self.assertIs(kopf.default, mine)
            raise KeyError
        self.assertIs(kopf.default, default)

    def test_arguments(self) -> None:
        """Sources and a registry exclude each other, and so do files and modules."""
        self.assertRaises(TypeError, KopfOperator, CONNECTION, "a.py", registry=[])
        for sources in (("a.py", "b"), ("a", "b")):
            self.assertRaises(TypeError, KopfOperator(CONNECTION, *sources)._load, Registries())
        self.assertEqual(KopfOperator(CONNECTION, registry=["mine"])._load(Registries()), ["mine"])


class SurroundingsTests(SynchronousTestCase):
    """What operators change in the process."""

    def test_environment(self) -> None:
        """$KUBECONFIG is restored, or removed if it was not set."""
        self.patch(os, "environ", {"KUBECONFIG": "before"})
        with _environment(CONNECTION):
            self.assertEqual(os.environ["KUBECONFIG"], "/kubeconfig")
        self.assertEqual(os.environ, {"KUBECONFIG": "before"})
        del os.environ["KUBECONFIG"]
        with _environment(CONNECTION):
            pass
        self.assertEqual(os.environ, {})

    def test_log(self) -> None:
        """Messages of kopf are kept from a level on, and the logger is restored."""
        self.patch(logging, "lastResort", None)
        logger, log = logging.getLogger("kopf"), _Log()
        before = logger.level, list(logger.handlers)
        with log.attached(logging.INFO):
            logging.getLogger("kopf.objects").info("seen %s", 1)
            logging.getLogger("kopf.objects").debug("not seen")
            logging.getLogger("other").warning("not seen")
        logging.getLogger("kopf.objects").error("later")
        self.assertEqual([line.partition("[")[2] for line in log.lines], ["INFO] kopf.objects: seen 1"])
        self.assertEqual((logger.level, list(logger.handlers)), before)


class Resource:
    """A resource of kopf."""

    def __init__(self, name: str, *, namespaced: bool) -> None:
        self.name, self.namespaced = name, namespaced

    def get_url(self, *, namespace: str | None) -> str:
        """Return the path of its objects."""
        return f"/{namespace}/{self.name}" if namespace else f"/{self.name}"


class WatchesTests(SynchronousTestCase):
    """The readiness of operators."""

    def answered(self, watches: _Watches, path: str, status: int = 200, **query: str) -> None:
        """Pass an answer."""
        url = SimpleNamespace(path=path, query=query)
        parameters = SimpleNamespace(url=url, response=SimpleNamespace(status=status))
        asyncio.run(watches._answered(None, None, parameters))

    def test_all(self) -> None:
        """An operator is ready when each of its resources is watched in each of its namespaces."""
        insights = SimpleNamespace(
            ready_resources=asyncio.Event(),
            ready_namespaces=asyncio.Event(),
            watched_resources={Resource("pods", namespaced=True), Resource("nodes", namespaced=False)},
            namespaces={"a", "b"},
        )
        watches = _Watches()
        for path in ("/nodes", "/a/pods"):
            self.answered(watches, path, watch="true")
        self.answered(watches, "/b/pods")
        self.answered(watches, "/b/pods", 403, watch="true")
        insights.ready_resources.set()
        insights.ready_namespaces.set()
        self.assertFalse(watches.include_all(insights))
        self.answered(watches, "/b/pods", watch="true")
        self.assertTrue(watches.include_all(insights))
        insights.ready_resources.clear()
        self.assertFalse(watches.include_all(insights))
