"""Tests for deletions of unreadable objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.storage import Write
from kubetwist.registry.generic.reading import MAX_REPORTED_CORRUPT_OBJECTS
from kubetwist.storage.errors import KeyNotFound
from tests.resources.server import Server, config_map

MAPS = "/api/v1/namespaces/default/configmaps"
IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential"
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", IGNORE: True}


class DiscardingTestCase(SynchronousTestCase):
    """Test case with a server whose stored ConfigMaps are damaged."""

    gates: Mapping[str, bool] = {"AllowUnsafeMalformedObjectDeletion": True}

    def setUp(self) -> None:
        """Create the server."""
        self.server = Server("configmaps", features=FeatureGates(settings=self.gates))
        self.client = self.server.client()
        self.assertEqual(self.client.ask("POST", MAPS, config_map("good"))[0], 201)
        self.damage("bad")

    def damage(self, *names: str, value: bytes = b"{damaged") -> None:
        """Write an unreadable value; reads of it are logged as errors."""
        writes = [Write(f"/registry/configmaps/default/{name}", value, None) for name in names]
        self.successResultOf(self.server.backend.commit(writes))
        self.server.clock.advance(1)
        self.flushLoggedErrors(ValueError)

    def stored(self, name: str) -> Any:
        """Return whether a key is stored."""
        path = f"/registry/configmaps/default/{name}"
        return self.successResultOf(Deferred.fromCoroutine(self.server.backend.read(path)))

    def delete(self, name: str, options: Any = OPTIONS) -> tuple[int, Any]:
        """Send a DELETE request."""
        return self.client.ask("DELETE", f"{MAPS}/{name}", options)


class DiscardingTests(DiscardingTestCase):
    """Deletions with the feature enabled."""

    def test_delete(self) -> None:
        """An unreadable object is deleted, and the remaining ones can be listed again."""
        code, status = self.delete("bad", None)
        self.assertEqual((code, status["reason"]), (500, "InternalError"))
        code, status = self.delete("bad")
        self.assertEqual(
            (code, status["status"], status["details"]), (200, "Success", {"name": "bad", "kind": "ConfigMap"})
        )
        with self.assertRaises(KeyNotFound):
            raise self.failureResultOf(
                Deferred.fromCoroutine(self.server.backend.read("/registry/configmaps/default/bad"))
            ).value
        code, listed = self.client.ask("GET", MAPS)
        self.assertEqual((code, [one["metadata"]["name"] for one in listed["items"]]), (200, ["good"]))

    def test_query(self) -> None:
        """The option may be in the query or in the body."""
        self.assertEqual(self.client.ask("DELETE", f"{MAPS}/bad?{IGNORE}=true")[0], 200)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/bad")[0], 404)

    def test_readable(self) -> None:
        """Readable and missing objects are handled as without the option."""
        for name in ("good", "none"):
            code, status = self.delete(name)
            self.assertEqual((code, status["reason"], status["details"]["kind"]), (422, "Invalid", "configmaps"))
            self.assertIn("is exclusively used to delete corrupt object(s)", status["message"])
        self.assertEqual(self.client.ask("GET", f"{MAPS}/good")[0], 200)

    def test_collection(self) -> None:
        """Collections are not deleted with the option."""
        code, status = self.client.ask("DELETE", MAPS, OPTIONS)
        self.assertEqual((code, status["details"]["causes"][0]["field"]), (422, IGNORE))
        self.assertIn("is not allowed with DELETECOLLECTION", status["message"])

    def test_permission(self) -> None:
        """The permission to delete is not sufficient: the unsafe verb must be allowed."""
        self.server.authorizer.refused.add("unsafe-delete-ignore-read-errors")
        code, status = self.delete("bad")
        self.assertEqual(code, 403)
        self.assertEqual(
            status["message"],
            'configmaps "bad" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: '
            "nobody says so",
        )
        self.assertTrue(self.stored("bad").value)

    def test_list(self) -> None:
        """The error of a list names all unreadable objects, up to a limit."""
        self.damage(*(f"bad-{index:03}" for index in range(MAX_REPORTED_CORRUPT_OBJECTS)))
        code, status = self.client.ask("GET", MAPS)
        self.assertEqual((code, status["reason"]), (500, "StorageReadError"))
        self.assertEqual(status["message"], "failed to read one or more configmaps from the storage")
        causes = status["details"]["causes"]
        self.assertEqual(causes[0]["field"], "/registry/configmaps/default/bad")
        self.assertEqual(len(causes), MAX_REPORTED_CORRUPT_OBJECTS + 1)
        self.assertIn("truncated", causes[-1]["message"])

    def test_repaired(self) -> None:
        """An object that is readable at the time of the deletion is not deleted."""
        self.damage(
            "bad", value=b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"bad","namespace":"default"}}'
        )
        self.assertEqual(self.delete("bad")[0], 422)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/bad")[0], 200)


class KeepingTests(DiscardingTestCase):
    """Deletions with the feature disabled."""

    gates: Mapping[str, bool] = {}

    def test_ignored(self) -> None:
        """The option is ignored."""
        code, status = self.delete("bad")
        self.assertEqual((code, status["reason"]), (500, "InternalError"))
        self.assertEqual(self.delete("good")[0], 200)
        self.assertIn("/registry/configmaps/default/bad", self.client.ask("GET", MAPS)[1]["message"])
