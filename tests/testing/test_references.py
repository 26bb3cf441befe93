"""Tests for L{kubetwist.testing._references}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing._references import Reference, Resource, ResourceTable, UnknownResourceError


class V1Deployment:
    """Looks like a model of the library C{kubernetes}, an item of a list."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in snake case."""
        return self._fields


def resource(plural: str, kind: str, group: str = "", version: str = "v1", **more: Any) -> Resource:
    """Return a resource with a short name of one letter."""
    verbs = frozenset({"list", "watch"})
    fields = {"singular": kind.lower(), "short_names": (plural[0],), "namespaced": True, "verbs": verbs, **more}
    return Resource(group, version, plural, kind=kind, **fields)


class ReferenceTests(SynchronousTestCase):
    """L{Reference}."""

    def test_text(self) -> None:
        """Text has a resource, perhaps a version, a group and a name."""
        for text, expected in (
            ("pods", Reference("pods")),
            ("pods/web-0", Reference("pods", name="web-0")),
            ("deployments.apps/web", Reference("deployments", "apps", name="web")),
            ("deployments.v1.apps/web", Reference("deployments", "apps", "v1", name="web")),
            ("pods.v1./web", Reference("pods", "", "v1", name="web")),
            ("widgets.v1beta1.example.com", Reference("widgets", "example.com", "v1beta1")),
        ):
            self.assertEqual(Reference.of(text), expected)
        self.assertEqual(Reference.of("pods", "web-0"), Reference("pods", name="web-0"))

    def test_malformed(self) -> None:
        """Malformed text, and two names, are errors."""
        for text in ("", "/web", "pods/", "pods/a/b", "pods web", "pods/ web"):
            with self.assertRaisesRegex(ValueError, "is no resource"):
                Reference.of(text)
        with self.assertRaisesRegex(ValueError, "another one"):
            Reference.of("pods/a", "b")
        for value in (None, 3, object()):
            with self.assertRaisesRegex(TypeError, "is no reference"):
                Reference.of(value)
        with self.assertRaisesRegex(ValueError, "no kind"):
            Reference.of({"apiVersion": "v1"})

    def test_objects(self) -> None:
        """Objects of client libraries are the same reference as the object itself."""
        meta = {"name": "web", "namespace": "a", "uid": "1"}
        obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}
        expected = Reference("Deployment", "apps", "v1", "a", "web", "1")
        model = V1Deployment(api_version="apps/v1", kind="Deployment", metadata=meta)
        for value in (
            obj,
            SimpleNamespace(raw=obj),
            SimpleNamespace(obj=obj),
            SimpleNamespace(to_dict=lambda: obj),
            model,
        ):
            self.assertEqual(Reference.of(value), expected)
        item = V1Deployment(api_version=None, kind=None, metadata=meta)
        self.assertEqual(Reference.of(item), Reference("Deployment", None, "", "a", "web", "1"))
        self.assertEqual(Reference.of(obj, "other"), Reference("Deployment", "apps", "v1", "a", "other"))

    def test_core_object(self) -> None:
        """An object of the core group is not one of another group."""
        self.assertEqual(Reference.of({"apiVersion": "v1", "kind": "Event"}), Reference("Event", "", "v1"))


class ResourceTests(SynchronousTestCase):
    """L{Resource} and L{ResourceTable}."""

    def test_path(self) -> None:
        """Paths have the namespace of namespaced resources."""
        pods, nodes = resource("pods", "Pod"), resource("nodes", "Node", namespaced=False)
        self.assertEqual(pods.path("a", "web-0"), "/api/v1/namespaces/a/pods/web-0")
        self.assertEqual(pods.path(), "/api/v1/pods")
        self.assertEqual(nodes.path("a", "n"), "/api/v1/nodes/n")
        self.assertEqual(resource("jobs", "Job", "batch").path("a"), "/apis/batch/v1/namespaces/a/jobs")

    def test_find(self) -> None:
        """The first resource with the name, group and version is found."""
        core, events = resource("events", "Event"), resource("events", "Event", "events.k8s.io")
        beta = resource("events", "Event", "events.k8s.io", "v1beta1")
        table = ResourceTable([core, events, beta, resource("pods", "Pod")])
        for text, expected in (
            ("events", core),
            ("Event", core),
            ("e", core),
            ("event.events.k8s.io", events),
            ("events.v1beta1.events.k8s.io", beta),
            ("events.v1.", core),
        ):
            self.assertIs(table.find(Reference.of(text)), expected)
        with self.assertRaisesRegex(UnknownResourceError, "no resource 'pots'; did you mean 'pods'"):
            table.find(Reference.of("pots"))

    def test_discovery(self) -> None:
        """Aggregated and single discovery documents give the same table."""
        pod = {"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True, "verbs": ["list"]}
        job = {**pod, "name": "jobs", "singularName": "", "kind": "Job", "shortNames": ["j"], "namespaced": False}
        versions = [{"version": "v1beta1"}, {"version": "v1"}]
        single: dict[str, Any] = {
            "/api": {"kind": "APIVersions"},
            "/api/v1": {"resources": [pod, {**pod, "name": "pods/status"}]},
            "/apis": {"groups": [{"name": "batch", "versions": versions, "preferredVersion": {"version": "v1"}}]},
            "/apis/batch/v1": {"resources": [job]},
            "/apis/batch/v1beta1": {"resources": [job]},
        }
        entry = {
            "resource": "pods",
            "singularResource": "pod",
            "responseKind": {"kind": "Pod"},
            "scope": "Namespaced",
            "verbs": ["list"],
        }
        other = {
            **entry,
            "resource": "jobs",
            "singularResource": "job",
            "responseKind": {"kind": "Job"},
            "scope": "Cluster",
            "shortNames": ["j"],
        }
        batch = [{"version": version, "resources": [other]} for version in ("v1", "v1beta1")]
        kind = "APIGroupDiscoveryList"
        aggregated = {
            "/api": {"kind": kind, "items": [{"versions": [{"version": "v1", "resources": [entry]}]}]},
            "/apis": {"kind": kind, "items": [{"metadata": {"name": "batch"}, "versions": batch}]},
        }
        expected = ResourceTable.fetch(aggregated.__getitem__).resources
        self.assertEqual(ResourceTable.fetch(single.__getitem__).resources, expected)
        self.assertEqual([one.text for one in expected], ["pods", "jobs.batch", "jobs.batch"])
