"""Tests for L{kubetwist.testing._waiting} and L{kubetwist.testing._objectwatch}, with a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from twisted.internet.task import deferLater

from kubetwist.testing import WaitTimeout
from kubetwist.testing._references import UnknownResourceError
from tests.testing.powercase import MAPS, PowerTestCase

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class WaitTests(PowerTestCase):
    """C{wait_for} of L{kubetwist.testing.InProcessServer}."""

    def wait(self, *arguments: Any, **criteria: Any) -> Deferred[Any]:
        """Begin to wait."""
        return ensureDeferred(self.server.wait_for(*arguments, **{"timeout": 30, **criteria}))

    async def until(self, happened: Callable[[], object]) -> None:
        """Return when a function returns a true value."""
        while not happened():
            await deferLater(reactor, 0.005)

    async def test_existing(self) -> None:
        """An object that meets the criteria is returned, for all forms of references."""
        await self.begin("--controllers=")
        created = await self.make("a")
        for reference in ("cm/a", "configmap/a", "configmaps.v1./a", created):
            found = await self.wait(reference, jsonpath=".data.of=a")
            self.assertEqual((found["kind"], found["metadata"]["uid"]), ("ConfigMap", created["metadata"]["uid"]))
        self.assertEqual((await self.wait("namespaces", "default"))["kind"], "Namespace")

    async def test_changes(self) -> None:
        """The wait ends with the change that meets the criteria."""
        await self.begin("--controllers=")
        wait = self.wait("cm/a", where=lambda obj: obj["data"]["k"] == "v")
        created = await self.make("a")
        created["data"] = {"k": "v"}
        await self.ask("PUT", f"{MAPS}/a", created)
        self.assertEqual((await wait)["data"], {"k": "v"})

    async def test_absent(self) -> None:
        """An object is absent after its deletion, and if another object has its name."""
        await self.begin("--controllers=")
        first = await self.make("a")
        wait = self.wait("cm/a", absent=True)
        await self.until(lambda: self.server.end_watches())
        await self.ask("DELETE", f"{MAPS}/a")
        self.assertIsNone(await wait)
        await self.make("a")
        self.assertIsNone(await self.wait(first, absent=True))
        with self.assertRaises(WaitTimeout):
            await self.wait("cm/a", absent=True, timeout=3)

    async def test_selection(self) -> None:
        """All objects of a selection, or a number of them, have to meet the criteria."""
        await self.begin("--controllers=")
        await self.make("a")
        wait = self.wait("cm", count=2, jsonpath=".data.of")
        await self.make("b")
        self.assertEqual([one["metadata"]["name"] for one in await wait], ["a", "b"])
        self.assertEqual(len(await self.wait("cm", field_selector="metadata.name=a")), 1)
        everywhere = await self.wait("cm", all_namespaces=True)
        self.assertIn("kube-system", {one["metadata"]["namespace"] for one in everywhere})
        self.assertEqual(await self.wait("cm", count=0, label_selector="x"), [])
        self.assertIsNone(await self.wait("cm", absent=True, label_selector="x"))
        with self.assertRaisesRegex(WaitTimeout, r"(?s)b: {.data.of} is 'b'"):
            await self.wait("cm", jsonpath=".data.of=a", timeout=3)
        with self.assertRaisesRegex(WaitTimeout, "there is no such object"):
            await self.wait("cm", label_selector="x", timeout=3)

    async def test_interrupted(self) -> None:
        """A wait survives the end of its watches, broken connections, 410, and a reset."""
        await self.begin("--controllers=")
        wait = self.wait("cm/a")
        await self.until(lambda: self.server.end_watches())
        await self.until(lambda: self.server.end_watches(410))
        await self.until(lambda: self.server.end_watches(hang_up=True))
        await self.server.compact()
        await self.until(lambda: self.server.end_watches(500))
        await self.server.reset()
        await self.make("a")
        self.assertEqual((await wait)["metadata"]["name"], "a")

    async def test_frozen(self) -> None:
        """A wait ends in real time while the server's clock is stopped."""
        await self.begin("--controllers=")
        self.server.freeze_time(5)
        with self.assertRaises(WaitTimeout):
            await self.wait("cm/a", timeout=3)
        wait = self.wait("cm/a")
        await self.make("a")
        self.assertEqual((await wait)["metadata"]["creationTimestamp"], "1970-01-01T00:00:05Z")

    async def test_message(self) -> None:
        """The error has the criteria, the problems, the events of the object and the object."""
        await self.begin("--controllers=")
        created = await self.make("a")
        involved = {"kind": "ConfigMap", "name": "a", "namespace": "default"}
        event = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "Seen", "message": "it was seen"}
        self.assertEqual((await self.ask("POST", "/api/v1/namespaces/default/events", event))[0], 201)
        with self.assertRaises(WaitTimeout) as caught:
            await self.wait("cm/a", condition="Ready", jsonpath=".data.of=b", timeout=3)
        error = caught.exception
        self.assertIsInstance(error, AssertionError)
        self.assertIsInstance(error, TimeoutError)
        text = str(error)
        lines = text.splitlines()
        self.assertEqual(
            lines[0],
            "configmaps/a in namespace default: condition Ready=True and jsonpath {.data.of}=b: not within 3 s",
        )
        self.assertEqual(lines[1], "  a: there is no condition Ready; {.data.of} is 'a'")
        self.assertEqual(lines[2], "events:")
        self.assertIn("configmap/a  it was seen", lines[3])
        self.assertEqual(lines[4:7], ["last object seen:", "  apiVersion: v1", "  kind: ConfigMap"])
        self.assertIn(created["metadata"]["uid"], text)
        self.assertNotIn("managedFields", text)

    async def test_deleted(self) -> None:
        """The error shows the last object seen after its deletion."""
        await self.begin("--controllers=")
        await self.make("a")
        wait = self.wait("cm/a", condition="Ready", timeout=3)
        await self.until(lambda: self.server.end_watches())
        await self.ask("DELETE", f"{MAPS}/a")
        with self.assertRaisesRegex(WaitTimeout, "(?s)there is no such object.*which was deleted:.*name: a"):
            await wait

    async def test_custom_resource(self) -> None:
        """A resource that is named with its group may be served later, and again after its removal."""
        await self.begin("--controllers=")
        wait = self.wait("widgets.example.com/a")
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
        await self.server.load([DEFINITION, widget])
        self.assertEqual((await wait)["kind"], "Widget")
        again = self.wait("widget.example.com/b")
        await self.until(lambda: self.server.end_watches(resource="widgets"))
        await self.ask("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
        cluster: Any = {**DEFINITION, "spec": {**DEFINITION["spec"], "scope": "Cluster"}}  # type: ignore[dict-item]
        await self.wait("crd/widgets.example.com", absent=True)
        await self.server.load([cluster, {**widget, "metadata": {"name": "b"}}])
        self.assertNotIn("namespace", (await again)["metadata"])

    async def test_unknown(self) -> None:
        """A resource without a group has to exist; one that cannot be watched is an error."""
        await self.begin("--controllers=")
        with self.assertRaisesRegex(UnknownResourceError, "did you mean 'pods'"):
            await self.wait("podz/a")
        with self.assertRaisesRegex(UnknownResourceError, "cannot be listed and watched"):
            await self.wait("tokenreviews.authentication.k8s.io/a")
        with self.assertRaisesRegex(WaitTimeout, "the server has no resource 'widgets.example.com'"):
            await self.wait("widgets.example.com/a", timeout=3)

    async def test_arguments(self) -> None:
        """Arguments that contradict each other are errors."""
        await self.begin("--controllers=")
        for arguments, message in (
            ({"resource": "cm/a", "count": 1}, "names one object"),
            ({"resource": "cm/a", "label_selector": "a"}, "names one object"),
            ({"resource": "cm", "absent": True, "count": 1}, "cannot be combined"),
            ({"resource": "cm", "all_namespaces": True, "namespace": "a"}, "cannot be combined"),
            ({"resource": "cm", "timeout": -1}, "must not be negative"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                await self.wait(**arguments)  # type: ignore[arg-type]

    async def test_not_recorded(self) -> None:
        """Requests of a wait are not recorded, and not affected by faults."""
        await self.begin("--controllers=")
        await self.make("a")
        with self.server.inject(500), self.server.record_requests() as log:
            await self.wait("cm/a")
        self.assertEqual(log.requests, [])

    async def test_cancelled(self) -> None:
        """A cancelled wait ends its request."""
        await self.begin("--controllers=")
        wait = self.wait("cm/a")
        await self.until(lambda: self.server.end_watches())
        wait.cancel()
        with self.assertRaises(CancelledError):
            await wait
        await self.until(lambda: not self.server.end_watches())
