"""Tests of L{kubetwist.registry.admissioncontext}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.admission import AdmissionContext
from kubetwist.api.errors import APIStatusError
from kubetwist.api.storage import Write
from kubetwist.storage.errors import RevisionConflict
from tests.registry.storetools import StoreTestCase
from tests.resources.server import Server, definitions


class ServerAdmissionContextTests(StoreTestCase):
    """Tests of L{ServerAdmissionContext}."""

    resources = ("configmaps", "namespaces", "resourcequotas")

    def setUp(self) -> None:
        """Create empty stores."""
        super().setUp()
        self.context: AdmissionContext = self.server.registry.context

    def test_release(self) -> None:
        """The release is that of the type definitions, or the newest without definitions."""
        self.assertEqual(self.context.release, "1.36")
        self.assertEqual(Server("configmaps", types=definitions()).registry.context.release, definitions().minor)

    def test_create(self) -> None:
        """A created object has defaults, and plugins find it immediately."""
        created = self.context.create("", "namespaces", "", {"metadata": {"name": "a"}})
        self.successResultOf(Deferred.fromCoroutine(created))  # type: ignore[arg-type]
        found = self.context.get_copy("", "namespaces", "", "a")
        assert found is not None
        self.assertEqual(found["spec"], {"finalizers": ["kubernetes"]})
        self.assertEqual(len(self.context.list_decoded("", "namespaces")), 1)

    def test_wait_for_object(self) -> None:
        """wait_for_object returns an object when it is created, or None after the timeout."""
        waiting = Deferred.fromCoroutine(self.context.wait_for_object("", "configmaps", "default", "a", 5.0))  # type: ignore[arg-type]
        self.assertNoResult(waiting)
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}})
        self.server.clock.advance(1)
        self.assertIsNotNone(self.successResultOf(waiting))
        waiting = Deferred.fromCoroutine(self.context.wait_for_object("", "configmaps", "default", "b", 5.0))  # type: ignore[arg-type]
        self.server.clock.advance(5)
        self.assertIsNone(self.successResultOf(waiting))

    def commit(self, commit: Any) -> Deferred[int]:
        """Update the status of a quota in the transaction of a write."""

        def change(obj: Any) -> None:
            obj.setdefault("status", {})["used"] = {"pods": "1"}

        return Deferred.fromCoroutine(
            self.context.commit_with_status_updates(commit, "", "resourcequotas", "default", ["q", "gone"], change)  # type: ignore[arg-type]
        )

    def test_commit_with_status_updates(self) -> None:
        """The status of existing objects is changed in the transaction; after a conflict, from the new state."""
        self.made(self.store("resourcequotas"), {"metadata": {"name": "q"}, "spec": {}})
        attempts: list[int] = []

        async def commit(writes: Sequence[Write]) -> int:
            attempts.append(len(writes))
            if len(attempts) == 1:
                raise RevisionConflict(writes[0].key, self.server.backend.revision)
            revision: int = await self.server.backend.commit(writes)
            return revision

        self.successResultOf(self.commit(commit))
        self.assertEqual(attempts, [1, 1])
        found = self.context.get_copy("", "resourcequotas", "default", "q")
        assert found is not None
        self.assertEqual(found["status"], {"used": {"pods": "1"}})

    def test_conflicts(self) -> None:
        """A status that changes before each attempt is a conflict (409)."""
        self.made(self.store("resourcequotas"), {"metadata": {"name": "q"}, "spec": {}})

        async def commit(writes: Sequence[Write]) -> int:
            raise RevisionConflict(writes[0].key, self.server.backend.revision)

        error = self.failureResultOf(self.commit(commit), APIStatusError).value
        self.assertEqual(error.code, 409)
