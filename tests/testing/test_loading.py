"""Tests for L{kubetwist.testing._loading}, with a server that is a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing._loading import PATIENCE, Loader, rank
from kubetwist.testing.manifests import LoadError, Manifest

#: The resources of the server by path; the last entry is whether they have namespaces.
BUILT_IN = {
    "/api/v1": [("namespaces", "Namespace", False), ("configmaps", "ConfigMap", True), ("pods", "Pod", True)],
    "/apis/apiextensions.k8s.io/v1": [("customresourcedefinitions", "CustomResourceDefinition", False)],
}
NAMESPACE: Any = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
CONFIG_MAP: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}}
POD: Any = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}}
FOOS: Any = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{"name": "v1", "served": True}, {"name": "v0", "served": False}],
    },
}
FOO: Any = {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": "f", "namespace": "team"}}


class Server:
    """
    The part of a server that a loader uses.

    @ivar delay: Seconds until definitions are established, and until pods can be created.
    @ivar rejected: Responses by name of object.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self.clock = Clock()
        self.delay = delay
        self.rejected: dict[str, tuple[int, str]] = {}
        self.objects: dict[str, Any] = {}
        self.created: list[str] = []
        self.names_message = ""
        self.options: list[str] = []

    def load(self, objects: Sequence[Any]) -> list[Any]:
        """Load objects; return the created ones."""
        manifests = [Manifest(obj, f"document {number}") for number, obj in enumerate(objects, 1)]
        return Loader(self.request, self.clock.seconds, self.clock.advance).load(manifests)

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Answer a request."""
        path, _, query = path.partition("?")
        if method == "GET":
            return self._get(path)
        self.options.append(query)
        name = body["metadata"]["name"]
        if name in self.rejected:
            code, message = self.rejected[name]
            return code, {"message": message}
        if method == "POST":
            parts = path.split("/")
            if "namespaces" in parts[:-1] and f"/api/v1/namespaces/{parts[-2]}" not in self.objects:
                return 404, {"message": f'namespaces "{parts[-2]}" not found'}
            if body["kind"] == "Pod" and self.clock.seconds() < self.delay:
                return 403, {"message": "no service account yet"}
            path = f"{path}/{name}"
            if path in self.objects:
                return 409, {"message": "already exists"}
        self.created.append(name)
        self.objects[path] = obj = {**body, "metadata": {**body["metadata"], "uid": f"uid of {name}"}}
        return (201 if method == "POST" else 200), obj

    def _get(self, path: str) -> tuple[int, Any]:
        established = self.clock.seconds() >= self.delay
        listed = BUILT_IN.get(path)
        defined = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.org" in self.objects
        if defined and established and path == "/apis/example.org/v1":
            listed = [("foos", "Foo", True)]
        if listed is not None:
            return 200, {"resources": [{"name": one, "kind": kind, "namespaced": ns} for one, kind, ns in listed]}
        if defined and established and path == "/apis/example.org/v1/foos":
            return 200, {}
        found = self.objects.get(path)
        if found is None:
            return 404, {"message": "not found"}
        if found["kind"] == "CustomResourceDefinition":
            conditions = [{"type": "Established", "status": str(established)}]
            if self.names_message:
                conditions.append({"type": "NamesAccepted", "status": "False", "message": self.names_message})
            found = {**found, "status": {"conditions": conditions}}
        found["metadata"]["resourceVersion"] = "1"
        return 200, found


class LoaderTests(SynchronousTestCase):
    """Objects of a load."""

    @given(st.permutations([NAMESPACE, CONFIG_MAP, FOOS, FOO, POD]), st.sampled_from([0.0, 1.0]))
    def test_any_order(self, objects: list[Any], delay: float) -> None:
        """All objects are created once, after what they need, in any order of the manifests."""
        server = Server(delay)
        created = server.load(objects)
        self.assertEqual([obj["metadata"]["name"] for obj in created], server.created)
        self.assertEqual(sorted(server.created), ["c", "f", "foos.example.org", "p", "team"])
        self.assertEqual(server.created[:2], ["team", "foos.example.org"])

    @given(st.permutations([NAMESPACE, CONFIG_MAP, FOOS, FOO, POD]))
    def test_stable(self, objects: list[Any]) -> None:
        """Objects of the same rank are created in the order of the manifests."""
        expected = [obj["metadata"]["name"] for obj in sorted(objects, key=rank)]
        server = Server()
        server.load(objects)
        self.assertEqual(server.created, expected)

    def test_dependencies_without_rank(self) -> None:
        """An object is tried again after an object of a later kind was created."""
        server = Server()
        server.rejected["c"] = (404, "wait for the pod")
        put = server.request

        def request(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            if "p" in server.created:
                server.rejected.clear()
            return put(method, path, body)

        server.request = request  # type: ignore[method-assign]
        server.load([NAMESPACE, CONFIG_MAP, POD])
        self.assertEqual(server.created, ["team", "p", "c"])
        self.assertEqual(server.clock.seconds(), 0)

    def test_rejected(self) -> None:
        """Objects that the server rejects are reported together, with the message of the Status, without a wait."""
        server = Server()
        server.rejected = {"c": (422, "is invalid"), "team": (403, "is forbidden")}
        with self.assertRaises(LoadError) as caught:
            server.load([CONFIG_MAP, NAMESPACE, POD])
        self.assertEqual(
            str(caught.exception),
            "document 2: Namespace team: 403: is forbidden\n"
            "document 1: ConfigMap team/c: 422: is invalid\n"
            'document 3: Pod team/p: 404: namespaces "team" not found',
        )
        self.assertEqual(server.clock.seconds(), 0)

    def test_unknown_kinds(self) -> None:
        """The errors about a kind and a version that are not served name them; there is no wait for them."""
        for obj, message in (
            ({**POD, "kind": "Nothing"}, "document 1: Nothing team/p: the server has no Nothing in v1"),
            (FOO, "document 1: Foo team/f: the server has no example.org/v1"),
        ):
            server = Server()
            with self.assertRaisesRegex(LoadError, message):
                server.load([obj])
            self.assertEqual(server.clock.seconds(), 0)

    def test_patience(self) -> None:
        """Objects that controllers must allow are tried again for some seconds after the last success."""
        server = Server(PATIENCE - 1)
        server.load([NAMESPACE, POD])
        self.assertEqual(server.created, ["team", "p"])
        server = Server(PATIENCE + 60)
        with self.assertRaisesRegex(LoadError, "document 2: Pod team/p: 403: no service account yet"):
            server.load([NAMESPACE, POD])
        self.assertLess(server.clock.seconds(), PATIENCE + 1)

    def test_many_errors(self) -> None:
        """An error lists ten objects."""
        objects = [{**CONFIG_MAP, "metadata": {"name": f"c{number}", "namespace": "team"}} for number in range(13)]
        with self.assertRaisesRegex(LoadError, r"(?s)c0: .*c9: .* found\n\.\.\. and 3 more objects\Z"):
            Server().load(objects)

    def test_definitions(self) -> None:
        """A definition that is not served, and one whose names are used, are errors."""
        with self.assertRaisesRegex(LoadError, "CustomResourceDefinition foos.example.org: is not served after 10 s"):
            Server(60).load([FOOS])
        server = Server()
        server.names_message = '"foos" is already in use'
        with self.assertRaisesRegex(LoadError, 'document 1: .*foos.example.org: "foos" is already in use'):
            server.load([FOOS])

    def test_updates(self) -> None:
        """Existing objects are updated."""
        server = Server()
        server.load([NAMESPACE, CONFIG_MAP])
        server.load([{**CONFIG_MAP, "data": {"k": "v"}}])
        self.assertEqual(server.objects["/api/v1/namespaces/team/configmaps/c"]["data"], {"k": "v"})

    def test_owners(self) -> None:
        """Dependents are created after their owners, with the new UIDs; unknown owners are dropped."""
        owners = [{"uid": "old", "name": "p"}, {"uid": "elsewhere", "name": "q"}]
        owned = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "ownerReferences": owners}}
        owner = {**POD, "metadata": {**POD["metadata"], "uid": "old"}}
        server = Server()
        server.load([NAMESPACE, owned, owner])
        self.assertEqual(server.created, ["team", "p", "c"])
        stored = server.objects["/api/v1/namespaces/team/configmaps/c"]["metadata"]
        self.assertEqual(stored["ownerReferences"], [{"uid": "uid of p", "name": "p"}])

    def test_validation(self) -> None:
        """Unknown fields of manifests are rejected, as by kubectl, except in dumps."""
        server = Server()
        server.load([NAMESPACE, {**CONFIG_MAP, "metadata": {"name": "d", "namespace": "team", "uid": "u"}}])
        self.assertEqual(server.options, ["fieldValidation=Strict", ""])


class RankTests(SynchronousTestCase):
    """The order of kinds."""

    def test_order(self) -> None:
        """Kinds come before the kinds that need them; a custom resource may have the name of a built-in kind."""
        kinds = (
            ("v1", "Namespace"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("scheduling.k8s.io/v1", "PriorityClass"),
            ("rbac.authorization.k8s.io/v1", "Role"),
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            ("apps/v1", "Deployment"),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        )
        ranks = [rank({"apiVersion": version, "kind": kind}) for version, kind in kinds]
        self.assertEqual(ranks, sorted(set(ranks)))
        custom = rank({"apiVersion": "example.org/v1", "kind": "Namespace"})
        self.assertEqual(custom, rank({"apiVersion": "apps/v1", "kind": "Deployment"}))
