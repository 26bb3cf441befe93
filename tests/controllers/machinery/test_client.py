"""Tests for L{kubetwist.controllers.machinery.client} and L{kubetwist.controllers.machinery.controller}."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.errors import APIStatusError
from kubetwist.api.frozen import frozen
from kubetwist.controllers.machinery.client import (
    controller_user,
    is_namespace_terminating_error,
)
from tests.controllers.harness import ControllerTestCase
from tests.registry.storetools import Plugin


class ClientTests(ControllerTestCase):
    """Writes of controllers."""

    resources = ("configmaps", "namespaces", "pods", "deployments")

    def setUp(self) -> None:
        """Create a client."""
        super().setUp()
        self.client = self.context.client("some-controller")

    def run_now(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of a coroutine."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def error_of(self, work: Coroutine[Any, Any, Any]) -> APIStatusError:
        """Return the error of a coroutine."""
        failure = self.failureResultOf(Deferred.fromCoroutine(work), APIStatusError)
        assert isinstance(failure.value, APIStatusError)
        return failure.value

    def managers(self, resource: str, name: str, group: str = "") -> list[tuple[str, str, str]]:
        """Return the managed fields of an object: manager, operation and subresource."""
        entries = self.find(resource, name, "one", group)["metadata"]["managedFields"]
        return sorted((one["manager"], one["operation"], one.get("subresource", "")) for one in entries)

    def test_create(self) -> None:
        """A created object has defaults, and kube-controller-manager owns its fields. The argument is not changed."""
        given = frozen({"metadata": {"generateName": "a-", "namespace": "one"}, "data": {"a": "b"}})
        made = self.run_now(self.client.create("", "configmaps", given))
        self.assertTrue(made.name.startswith("a-"))
        self.assertEqual(self.find("configmaps", made.name, "one")["data"], {"a": "b"})
        self.assertEqual(self.managers("configmaps", made.name), [("kube-controller-manager", "Update", "")])
        self.assertEqual(given, {"metadata": {"generateName": "a-", "namespace": "one"}, "data": {"a": "b"}})
        existing = {"metadata": {"name": made.name, "namespace": "one"}}
        self.assertEqual(self.error_of(self.client.create("", "configmaps", existing)).reason, "AlreadyExists")
        self.assertEqual(self.error_of(self.client.create("", "unicorns", existing)).code, 404)
        bad = {"metadata": {"name": "_", "namespace": "one"}}
        self.assertEqual(self.error_of(self.client.create("", "configmaps", bad)).code, 422)

    def test_admission(self) -> None:
        """Admission is called, with the service account of the controller as the user."""
        users = []
        plugin = Plugin(lambda attributes: users.append(attributes.user))
        self.admit(plugin)
        self.run_now(self.client.create("", "configmaps", {"metadata": {"name": "a", "namespace": "one"}}))
        self.run_now(self.client.patch("", "configmaps", "one", "a", {"data": {"a": "b"}}))
        self.run_now(self.client.delete("", "configmaps", "one", "a"))
        operations = [operation for operation, _ in plugin.seen]
        self.assertEqual(list(dict.fromkeys(operations)), ["CREATE", "UPDATE", "DELETE"])
        self.assertEqual({user.name for user in users}, {"system:serviceaccount:kube-system:some-controller"})
        self.assertIn("system:serviceaccounts:kube-system", users[0].groups)
        self.assertEqual(controller_user("system:kube-scheduler").name, "system:kube-scheduler")

    def test_terminating_namespace(self) -> None:
        """A create in a terminating namespace is recognized."""
        self.admission = True
        self.reset_stores()
        self.client = self.context.client("some-controller")
        self.make("namespaces", "one")
        self.remove("namespaces", "one")
        error = self.error_of(self.client.create("", "configmaps", {"metadata": {"name": "a", "namespace": "one"}}))
        self.assertTrue(is_namespace_terminating_error(error))
        self.assertFalse(is_namespace_terminating_error(APIStatusError.bad_request("no")))

    def test_update(self) -> None:
        """An update is retried with the newest state after a conflict. An unchanged object is not written."""
        self.make("configmaps", "a", "one", data={"n": "1"})
        calls = []

        def change(obj: Any) -> None:
            calls.append(obj["data"]["n"])
            if len(calls) == 1:
                self.change("configmaps", "a", lambda other: other["data"].update(n="2"), "one")
            obj["data"]["mine"] = "yes"

        record = self.run_now(self.client.update("", "configmaps", "one", "a", change))
        self.assertEqual(calls, ["1", "2"])
        self.assertEqual(self.find("configmaps", "a", "one")["data"], {"n": "2", "mine": "yes"})
        before = self.memory.revision
        again = self.run_now(self.client.update("", "configmaps", "one", "a", lambda obj: None))
        self.assertEqual((again.revision, self.memory.revision), (record.revision, before))
        self.assertEqual(self.error_of(self.client.update("", "configmaps", "one", "x", lambda obj: None)).code, 404)

    def test_replace(self) -> None:
        """The change function may return another object. An exception cancels the update."""
        self.make("configmaps", "a", "one", data={"n": "1"})
        self.run_now(self.client.update("", "configmaps", "one", "a", lambda obj: {**obj, "data": {"m": "2"}}))
        self.assertEqual(self.find("configmaps", "a", "one")["data"], {"m": "2"})

        def fail(obj: Any) -> None:
            raise LookupError("no")

        self.failureResultOf(
            Deferred.fromCoroutine(self.client.update("", "configmaps", "one", "a", fail)), LookupError
        )

    def test_preconditions(self) -> None:
        """An update or a deletion can have a uid and a revision as preconditions."""
        self.make("configmaps", "a", "one")
        record = self.context.informer("", "configmaps").get("one", "a")
        assert record is not None
        uid = self.find("configmaps", "a", "one")["metadata"]["uid"]
        old = record.revision

        def label(obj: Any) -> None:
            obj["metadata"].setdefault("labels", {})["a"] = "b"

        self.assertEqual(self.error_of(self.client.update("", "configmaps", "one", "a", label, uid="u")).code, 409)
        self.assertEqual(self.error_of(self.client.update("", "configmaps", "one", "a", label, revision=1)).code, 409)
        self.run_now(self.client.update("", "configmaps", "one", "a", label, uid=uid, revision=old))
        self.assertEqual(self.error_of(self.client.delete("", "configmaps", "one", "a", uid="u")).code, 409)
        self.assertEqual(self.error_of(self.client.delete("", "configmaps", "one", "a", revision=old)).code, 409)
        self.assertTrue(self.run_now(self.client.delete("", "configmaps", "one", "a", uid=uid)))
        self.assertIsNone(self.find("configmaps", "a", "one"))

    def test_status(self) -> None:
        """A status update changes only the status, and owns its fields with the subresource status."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        self.make("deployments", "d", "one", "apps", spec=spec)

        def change(obj: Any) -> None:
            obj["status"] = {"replicas": 3}
            obj["spec"]["replicas"] = 5

        self.run_now(self.client.update_status("apps", "deployments", "one", "d", change))
        found = self.find("deployments", "d", "one", "apps")
        self.assertEqual((found["status"], found["spec"]["replicas"]), ({"replicas": 3}, 1))
        self.assertIn(("kube-controller-manager", "Update", "status"), self.managers("deployments", "d", "apps"))

    def test_propagation(self) -> None:
        """A deletion with propagation policy sets the finalizer for the garbage collector."""
        self.make("configmaps", "a", "one")
        self.assertFalse(self.run_now(self.client.delete("", "configmaps", "one", "a", propagation="Foreground")))
        self.assertEqual(self.find("configmaps", "a", "one")["metadata"]["finalizers"], ["foregroundDeletion"])

    def test_apply(self) -> None:
        """Apply creates or changes an object. Fields that were applied before and are missing now are removed."""
        client = self.context.client("some-controller", "me")
        meta = {"name": "a", "namespace": "one"}
        self.run_now(client.apply("", "configmaps", {"metadata": meta, "data": {"a": "1", "b": "2"}}))
        self.change("configmaps", "a", lambda obj: obj["data"].update(b="3", c="4"), "one")
        self.run_now(client.apply("", "configmaps", {"metadata": meta, "data": {"b": "5"}}))
        self.assertEqual(self.find("configmaps", "a", "one")["data"], {"b": "5", "c": "4"})
        self.assertEqual(self.managers("configmaps", "a"), [("me", "Apply", ""), ("test", "Update", "")])
