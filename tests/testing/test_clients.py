"""Tests for L{kubetwist.testing._clients}; tests/e2e/test_clients.py uses the clients."""

from __future__ import annotations

import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import Connection
from kubetwist.testing._clients import import_client

FACTORIES = (
    ("kubernetes", "kubernetes"),
    ("kubernetes_aio", "kubernetes"),
    ("kubernetes_asyncio", "kubernetes_asyncio"),
    ("kr8s", "kr8s"),
    ("kr8s_async", "kr8s"),
    ("lightkube", "lightkube"),
    ("lightkube_async", "lightkube"),
    ("pykube", "pykube"),
    ("kopf", "kopf"),
)


class ImportTests(SynchronousTestCase):
    """L{import_client}, and the errors of factories without their libraries."""

    def test_missing(self) -> None:
        """The error has the command that installs the library."""
        with self.assertRaisesRegex(ModuleNotFoundError, "^this needs nosuch.config: pip install 'no-such>=1'$"):
            import_client("nosuch.config", "no-such>=1")

    def test_missing_submodule(self) -> None:
        """An installed library can be too old to have the module."""
        with self.assertRaisesRegex(ModuleNotFoundError, "this needs json.aio: pip install 'json>=2'"):
            import_client("json.aio", "json>=2")

    def test_missing_requirement(self) -> None:
        """A missing module that the library imports is reported unchanged."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        (folder / "withrequirement.py").write_text("import nosuch")
        self.patch(sys, "path", [str(folder), *sys.path])
        with self.assertRaisesRegex(ModuleNotFoundError, "^No module named 'nosuch'$"):
            import_client("withrequirement", "with-requirement")

    def test_factories(self) -> None:
        """Each factory names its library if that is not installed."""
        connection = Connection("https://127.0.0.1:1", Path("admin.kubeconfig"), "", "", "", "")
        for factory, library in FACTORIES:
            hidden = {name: None for name in sys.modules if f"{name}.".startswith(f"{library}.")}
            self.patch(sys, "modules", {**sys.modules, **hidden, library: None})
            with self.assertRaisesRegex(ModuleNotFoundError, f"^this needs {library}[.\\w]*: pip install"):
                getattr(connection, factory)()
