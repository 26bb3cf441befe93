"""Tests for L{kubetwist.testing.recording._recorder}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.recording._recorder import ObjectKey, Recorder, RecordingTooLarge, collection_path

EARLY, WRITE, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:06Z"


def config_map(name: str, data: str = "", created: str = EARLY, uid: str = "") -> dict[str, Any]:
    """Return a config map in the namespace default."""
    meta = {"name": name, "namespace": "default", "creationTimestamp": created, "uid": uid or f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": data}}


def key(name: str) -> ObjectKey:
    """Return the key of a config map."""
    return ObjectKey(collection_path("", "default", "configmaps"), name)


class RecorderTests(SynchronousTestCase):
    """Tests for L{Recorder}."""

    def setUp(self) -> None:
        """Make a recorder."""
        self.recorder = Recorder(1 << 20)

    def see(self, *objects: dict[str, Any]) -> None:
        """Observe a list, whose items have no kind."""
        items = [{name: value for name, value in obj.items() if name not in ("kind", "apiVersion")} for obj in objects]
        self.recorder.observe("", "configmaps", {"apiVersion": "v1", "kind": "ConfigMapList", "items": items})

    def event(self, kind: str, obj: dict[str, Any]) -> None:
        """Observe an event of a watch."""
        self.recorder.observe_event("", "configmaps", {"type": kind, "object": obj})

    def found(self) -> dict[str, str]:
        """Return the data of the recorded objects by name."""
        for obj in self.recorder.objects:
            self.assertEqual((obj["apiVersion"], obj["kind"]), ("v1", "ConfigMap"))
        return {obj["metadata"]["name"]: obj["data"]["k"] for obj in self.recorder.objects}

    def test_newest(self) -> None:
        """Before a write the newest state of each object counts, from objects, lists and watches."""
        self.see(config_map("a", "1"), config_map("b", "1"), config_map("c", "1"))
        self.recorder.observe("", "configmaps", config_map("a", "2"))
        self.event("MODIFIED", config_map("b", "2"))
        self.event("ADDED", config_map("d", "1"))
        self.event("DELETED", config_map("c", "1"))
        self.event("BOOKMARK", config_map("e"))
        self.assertEqual(self.found(), {"a": "2", "b": "2", "d": "1"})

    def test_before_writes(self) -> None:
        """After a write no state changes; objects of the time before it are still added."""
        self.see(config_map("a", "1"), config_map("b", "1"))
        self.recorder.begin_write(key("a"), WRITE)
        self.recorder.end_write("", "configmaps", "PATCH a: 200", None)
        self.see(config_map("a", "2"), config_map("b", "2"), config_map("c", "1"))
        self.event("DELETED", config_map("b", "2"))
        self.assertEqual(self.found(), {"a": "1", "b": "1", "c": "1"})
        self.assertEqual(self.recorder.writes, ["PATCH a: 200"])

    def test_created_by_test(self) -> None:
        """Objects that the test creates are not recorded, even if a watch shows them first."""
        self.recorder.begin_write(key("a"), WRITE)
        self.event("ADDED", config_map("a", created=LATE))
        self.recorder.end_write("", "configmaps", "POST: 201", config_map("a", created=LATE))
        self.recorder.begin_write(None, WRITE)
        self.event("ADDED", config_map("gen-x1", created=LATE))
        self.recorder.end_write("", "configmaps", "POST: 201", config_map("gen-x1", created=LATE))
        self.see(config_map("a", created=LATE), config_map("gen-x1", created=LATE))
        self.assertEqual(self.found(), {})
        self.assertEqual(self.recorder.later, {})

    def test_later(self) -> None:
        """Objects that the cluster creates after the first write are named only."""
        self.recorder.begin_write(key("a"), WRITE)
        self.see(config_map("reaction", created=LATE))
        self.assertEqual(self.found(), {})
        self.assertEqual(list(self.recorder.later.values()), ["v1 ConfigMap default/reaction"])

    def test_not_objects(self) -> None:
        """Responses that are not whole objects are ignored."""
        for response in (
            None,
            [],
            {"kind": "Status", "metadata": {"name": "x"}},
            {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "rows": []},
            {"kind": "PartialObjectMetadata", "metadata": {"name": "x"}},
            {"kind": "ConfigMapList", "apiVersion": "v1", "items": [5, {"metadata": 5}]},
            {"kind": "APIResourceList", "resources": []},
        ):
            self.recorder.observe("", "configmaps", response)
            self.recorder.observe_event("", "configmaps", {"type": "ADDED", "object": response})
        self.recorder.observe_event("", "configmaps", "text")
        self.assertEqual(self.recorder.objects, [])

    def test_limit(self) -> None:
        """More than the limit is an error with advice; replaced and deleted objects do not count."""
        recorder = self.recorder = Recorder(2000)
        for _ in range(20):
            self.see(config_map("a", "x" * 1000))
        self.event("DELETED", config_map("a"))
        self.see(config_map("b", "x" * 1000))
        error = self.assertRaises(RecordingTooLarge, self.see, config_map("c", "x" * 1000))
        self.assertIn("v1 ConfigMap default/c: read fewer objects", str(error))
        self.assertEqual(len(recorder.objects), 1)

    def test_dependencies(self) -> None:
        """The service account and the classes that a pod needs are missing unless they are recorded."""
        spec = {"serviceAccountName": "robot", "priorityClassName": "high", "containers": []}
        meta = {"name": "p", "namespace": "shop"}
        self.recorder.observe("", "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        account, priority = (
            "/api/v1/namespaces/shop/serviceaccounts/robot",
            "/apis/scheduling.k8s.io/v1/priorityclasses/high",
        )
        self.assertEqual(list(self.recorder.missing_dependencies()), [account, priority])
        robot = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "shop"}}
        self.recorder.observe("", "serviceaccounts", robot)
        self.assertEqual(list(self.recorder.missing_dependencies()), [priority])

    def test_replayable(self) -> None:
        """What another server cannot load is omitted with a reason, or without what it would refuse."""
        observe = self.recorder.observe

        def obj(version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
            return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **fields.pop("meta", {})}, **fields}

        observe("metrics.k8s.io", "pods", obj("metrics.k8s.io/v1beta1", "PodMetrics", "m"))
        hook = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hook")
        observe("admissionregistration.k8s.io", "validatingwebhookconfigurations", hook)
        conversion = {"strategy": "Webhook", "webhook": {}}
        definition = obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", "w", spec={"conversion": conversion})
        observe("apiextensions.k8s.io", "customresourcedefinitions", {**definition, "status": {}})
        observe("", "services", obj("v1", "Service", "kubernetes", meta={"namespace": "default"}))
        addresses = {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"]}
        observe("", "services", obj("v1", "Service", "web", spec={**addresses, "ports": []}))
        observe("", "services", obj("v1", "Service", "headless", spec={"clusterIP": "None", "clusterIPs": ["None"]}))
        observe("", "configmaps", obj("v1", "ConfigMap", "kube-root-ca.crt"))
        observe(
            "apiregistration.k8s.io", "apiservices", obj("apiregistration.k8s.io/v1", "APIService", "v1.apps", spec={})
        )
        known = ["", "apiextensions.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io"]
        objects, omitted = self.recorder.replayable(known)
        self.assertEqual(
            omitted,
            {
                "metrics.k8s.io/v1beta1 PodMetrics m": "the replay does not serve metrics.k8s.io/v1beta1",
                "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration hook": (
                    "the replay has no webhook servers"
                ),
            },
        )
        self.assertEqual(
            {found["metadata"]["name"]: found["spec"] for found in objects},
            {
                "w": {"conversion": {"strategy": "None"}},
                "web": {"ports": []},
                "headless": {"clusterIP": "None", "clusterIPs": ["None"]},
            },
        )
        self.assertNotIn("status", objects[0])
