"""Tests for L{kubetwist.testing.admission}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.api.errors import APIStatusError
from kubetwist.testing.admission import StubServer, write


class StubTests(SynchronousTestCase):
    """Plugins without a server."""

    def test_built_in(self) -> None:
        """A built-in plugin works with the stub as with a server."""
        server = StubServer().add("", "namespaces", {"metadata": {"name": "default"}})
        plugin = NamespaceLifecycle()

        async def admitted(namespace: str) -> None:
            answer: Any = plugin.admit(write({"metadata": {"name": "a"}}, namespace=namespace, server=server))
            if answer is not None:
                await answer

        self.successResultOf(admitted("default"))
        self.failureResultOf(admitted("other"), APIStatusError)

    def test_objects(self) -> None:
        """Views are frozen, lookups are copies, and lists contain one namespace or all."""
        server = StubServer()
        for namespace in ("a", "b"):
            server.add("apps", "deployments", {"metadata": {"name": "d", "namespace": namespace}})
        self.assertEqual(len(server.list_decoded("apps", "deployments")), 2)
        self.assertEqual(len(server.list_copies("apps", "deployments", "a")), 1)
        view, copy = (
            server.get_decoded("apps", "deployments", "a", "d"),
            server.get_copy("apps", "deployments", "a", "d"),
        )
        assert view is not None and copy is not None
        self.assertEqual(view, copy)
        with self.assertRaises(TypeError):
            view["x"] = 1
        copy["x"] = 1
        self.assertNotEqual(server.get_copy("apps", "deployments", "a", "d"), copy)
        self.assertIsNone(server.get_decoded("apps", "deployments", "c", "d"))
        self.assertTrue(self.successResultOf(server.ensure_cached("apps", "deployments")))
        self.assertFalse(self.successResultOf(server.ensure_cached("example.com", "kites")))
        self.assertEqual(
            [load() for load in server.list_lazy("apps", "deployments")], server.list_copies("apps", "deployments")
        )

    def test_writing(self) -> None:
        """Objects that a plugin creates exist afterwards; conflicting ones are rejected."""
        server = StubServer()
        obj = {"metadata": {"name": "m", "namespace": "a"}}
        self.successResultOf(server.create("", "configmaps", "a", obj))
        self.failureResultOf(server.create("", "configmaps", "a", obj), APIStatusError)

        async def commit(further_writes: Any) -> int:
            return 7

        async def failing(further_writes: Any) -> int:
            raise KeyError

        def change(stored: Any) -> None:
            stored["status"] = {"counted": True}

        where = "", "configmaps", "a", ("m", "gone")
        self.failureResultOf(server.commit_with_status_updates(failing, *where, change), KeyError)
        self.assertNotIn("status", server.objects["", "configmaps", "a", "m"])
        self.assertEqual(self.successResultOf(server.commit_with_status_updates(commit, *where, change)), 7)
        self.assertIn("status", server.objects["", "configmaps", "a", "m"])

    def test_kinds(self) -> None:
        """The stub has the configured kinds."""
        server = StubServer(kinds={("apps", "v1", "Deployment"): ("deployments", True)})
        self.assertEqual(server.resources_for_kind("apps", "v1", "Deployment"), [("deployments", True)])
        self.assertEqual(server.resources_for_kind("apps", "v1", "Other"), [])

    def test_write(self) -> None:
        """A write has the attributes of a request."""
        warnings: list[str] = []
        one = write(
            None, "deployments", "DELETE", api_version="apps/v1", old={"metadata": {"name": "d"}}, warn=warnings.append
        )
        one.warn("careful")
        one.annotate("example.org/a", "b")
        self.assertEqual((one.group, one.version, one.name), ("apps", "v1", "d"))
        self.assertEqual((one.options or {})["kind"], "DeleteOptions")
        self.assertEqual((warnings, one.annotations), (["careful"], {"example.org/a": ("b", "Metadata")}))
