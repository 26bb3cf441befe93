"""Tests for L{kubetwist.testing._metrics}, with a server on the reactor."""

from __future__ import annotations

from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "a"}}


class SetMetricTests(TestCase):
    """C{set_metric} of a server."""

    async def setUp(self) -> None:
        """Start a server."""
        self.server = InProcessServer("--fake-nodes=1")
        self.addCleanup(self.server.stop)
        await self.server.start()

    async def values(self, path: str) -> Any:
        """Return the values of metrics, or the code of an error."""
        code, found = await deferToThread(self.server.connection.request, "GET", path)
        return [one["value"] for one in found["items"]] if code == 200 else code

    async def test_objects(self) -> None:
        """A metric of an object is set by any reference to it, changed, removed, and undone by reset."""
        path = f"{CUSTOM}/namespaces/default/services/web/rate"
        await self.server.settle()
        await self.server.set_baseline()
        await self.server.set_metric("rate", 10, object="svc/web")
        self.assertEqual(await self.values(path), ["10"])
        await self.server.set_metric("rate", "1500m", object="service/web", namespace="default")
        self.assertEqual(await self.values(path), ["1500m"])
        await self.server.set_metric("rate", 0.25, object=INGRESS)
        self.assertEqual(await self.values(f"{CUSTOM}/namespaces/a/ingresses.networking.k8s.io/web/rate"), ["250m"])
        await self.server.set_metric("rate", 4, object="nodes/pretend-node-0")
        self.assertEqual(await self.values(f"{CUSTOM}/nodes/pretend-node-0/rate"), ["4"])
        for _ in range(2):
            await self.server.set_metric("rate", None, object="services/web")
            self.assertEqual(await self.values(path), 404)
        await self.server.reset()
        self.assertEqual(await self.values(f"{CUSTOM}/nodes/pretend-node-0/rate"), 404)

    async def test_external(self) -> None:
        """External metrics with different labels are separate."""
        await self.server.set_metric("queue", 1, labels={"name": "a"})
        await self.server.set_metric("queue", 2, labels={"name": "b"})
        self.assertEqual(sorted(await self.values(f"{EXTERNAL}/queue")), ["1", "2"])
        self.assertEqual(await self.values(f"{EXTERNAL}/queue?labelSelector=name%3Db"), ["2"])

    async def test_invalid(self) -> None:
        """Invalid arguments are errors of one line."""
        for metric, value, more in (
            ("", 1, {}),
            ("a/b", 1, {}),
            ("m", "x", {}),
            ("m", 1, {"object": "services", "pods": ""}),
            ("m", 1, {"object": "services"}),
            ("m", 1, {"labels": {"a": "b,c"}}),
            ("m", 1, {"pods": "a=b,,"}),
        ):
            with self.assertRaises(ValueError, msg=f"{metric} {value} {more}"):
                await self.server.set_metric(metric, value, **more)
        with self.assertRaises(LookupError):
            await self.server.set_metric("m", 1, object="things/web")

    async def test_role(self) -> None:
        """The roles view, edit and admin permit reads of metrics.k8s.io."""
        await self.server.settle()
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
        for name in ("system:aggregated-metrics-reader", "view", "edit", "admin"):
            _, role = await deferToThread(self.server.connection.request, "GET", path + name)
            found = [one for one in role["rules"] if one["apiGroups"] == ["metrics.k8s.io"]]
            self.assertEqual(
                found,
                [{"apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
            )
