"""Tests of the annotations, and of a server with the controller."""

from __future__ import annotations

from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.api.times import format_time
from kubetwist.testing.controllers import ControllerHarness
from kubetwist.testing.memory import START
from kubetwist.testing.trial import KubeAPIMixin
from objectexpiry.annotations import AFTER, AT, expiry_of, parse_duration

CREATED = "2027-01-01T00:00:00Z"
MIDNIGHT = 1_798_761_600.0
DAY = 86400


def metadata_of(name: str, at: str = "", after: str = "") -> dict[str, Any]:
    """Return the metadata of an object that expires at or after a time."""
    return {"name": name, "annotations": {key: value for key, value in ((AT, at), (AFTER, after)) if value}}


def namespace(name: str, **expiry: str) -> dict[str, Any]:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata_of(name, **expiry)}


def config_map(name: str, place: str = "shop", **expiry: str) -> dict[str, Any]:
    """Return a ConfigMap in a namespace."""
    metadata = {**metadata_of(name, **expiry), "namespace": place}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class AnnotationsTests(SynchronousTestCase):
    """The annotations of objects."""

    def expiry(self, **annotations: str) -> float | None:
        """Return when an object with C{at} and C{after} expires."""
        return expiry_of({"metadata": {"creationTimestamp": CREATED, **metadata_of("a", **annotations)}})

    def test_durations(self) -> None:
        """Durations have units from weeks to seconds, in this order."""
        for text, seconds in (("90s", 90), ("36h", 129600), ("1d12h", 129600), ("1w2d3h4m5s", 788645), ("0s", 0)):
            self.assertEqual(parse_duration(text), seconds)
        for text in ("", "1", "h", "1h1d", "1 h", "-1h", "1.5h", "1h\n", "1y", "9999999999w", "٣h"):
            self.assertRaises(ValueError, parse_duration, text)

    def test_expiry(self) -> None:
        """An object expires at a time, or a duration after its creation; the earlier one counts."""
        self.assertEqual(self.expiry(), None)
        self.assertEqual(expiry_of({"metadata": {"name": "a"}}), None)
        self.assertEqual(self.expiry(after="1h"), MIDNIGHT + 3600)
        self.assertEqual(self.expiry(at="2027-01-01T01:00:00+01:00"), MIDNIGHT)
        self.assertEqual(self.expiry(at="2027-01-01T02:00:00Z", after="1h"), MIDNIGHT + 3600)
        self.assertEqual(self.expiry(at="2027-01-01T02:00:00Z", after="1d"), MIDNIGHT + 7200)

    def test_invalid(self) -> None:
        """An invalid annotation is an error with its name and the first characters of its value."""
        for name, annotation in (("at", AT), ("after", AFTER)):
            error = self.assertRaises(ValueError, self.expiry, **{name: "soon" * 100_000})
            self.assertTrue(str(error).startswith(f"{annotation}: 'soonsoon"), str(error))
            self.assertLess(len(str(error)), 200)


class ControllerTests(SynchronousTestCase):
    """The controller without a server, with a clock that the tests move."""

    def setUp(self) -> None:
        """Start the controller."""
        self.harness = ControllerHarness("object-expiry-controller", [namespace("default"), namespace("shop")])
        self.addCleanup(self.harness.stop)

    def make(self, name: str, **fields: Any) -> None:
        """Create a ConfigMap; C{at} and C{after} give its expiry."""
        self.harness.create(config_map(name, **fields))

    def names(self, place: str = "shop") -> list[str]:
        """Return the names of the ConfigMaps in a namespace."""
        return [obj["metadata"]["name"] for obj in self.harness.list("configmaps", place)]

    def test_deleted(self) -> None:
        """Objects are deleted at their times; objects without annotations remain."""
        self.make("first", after="1h")
        self.make("second", at=format_time(START + 2 * DAY))
        self.make("third")
        secret = config_map("secret", after="1h")
        self.harness.create({**secret, "kind": "Secret"})
        self.harness.settle(3599)
        self.assertEqual(self.names(), ["first", "second", "third"])
        self.harness.settle(1)
        self.assertEqual(self.names(), ["second", "third"])
        self.assertEqual(self.harness.list("secrets", "shop"), [])
        self.harness.settle(2 * DAY)
        self.assertEqual(self.names(), ["third"])

    def test_existing(self) -> None:
        """Objects that exist at the start expire, at once if their time is over."""
        over, soon = (config_map(name, at=format_time(START + when)) for name, when in (("over", -1), ("soon", 9)))
        with ControllerHarness("object-expiry-controller", [namespace("shop"), over, soon]) as harness:
            harness.settle(1)
            self.assertEqual([obj["metadata"]["name"] for obj in harness.list("configmaps", "shop")], ["soon"])
            harness.settle(9)
            self.assertEqual(harness.list("configmaps", "shop"), [])

    def test_later(self) -> None:
        """An object whose annotation is changed before its time expires at the new time."""
        self.make("a", after="1h")
        self.harness.update(config_map("a", after="2h"))
        self.harness.settle(3601)
        self.assertEqual(self.names(), ["a"])
        self.harness.settle(3600)
        self.assertEqual(self.names(), [])

    def test_kept(self) -> None:
        """An object whose annotation is removed before its time remains."""
        self.make("a", after="1h")
        self.harness.update(config_map("a"))
        self.harness.settle(DAY)
        self.assertEqual(self.names(), ["a"])

    def test_protected(self) -> None:
        """Namespaces that the cluster needs, and objects in them, do not expire."""
        self.make("a", after="0s", place="default")
        self.harness.update(namespace("default", after="0s"))
        self.harness.settle()
        self.assertEqual(self.names("default"), ["a"])
        (default,) = (obj for obj in self.harness.list("namespaces") if obj["metadata"]["name"] == "default")
        self.assertNotIn("deletionTimestamp", default["metadata"])

    def test_invalid(self) -> None:
        """An object with an invalid annotation remains, and an event gives the reason."""
        self.make("a", after="soon")
        self.harness.settle()
        (event,) = self.harness.list("events", "shop")
        message = f"{AFTER}: 'soon' is no duration such as 36h or 1d12h"
        self.assertEqual((event["type"], event["reason"], event["message"]), ("Warning", "InvalidExpiry", message))
        self.assertEqual(self.names(), ["a"])


class ServerTests(KubeAPIMixin, TestCase):
    """A server that finds the controller."""

    async def test_namespace(self) -> None:
        """A namespace is deleted with its content."""
        server = await self.startKubeAPI()

        async def ask(method: str, path: str, body: Any = None) -> int:
            code, _ = await deferToThread(server.request, method, path, body)
            return code

        server.freeze_time()
        self.assertEqual(await ask("POST", "/api/v1/namespaces", namespace("preview", after="1d")), 201)
        path = "/api/v1/namespaces/preview/configmaps"
        self.assertEqual(await ask("POST", path, config_map("a", place="preview")), 201)
        # While there is content, the controller of namespaces checks it again after some seconds.
        for steps, seconds, code in ((1, DAY - 60, 200), (8, 20, 404)):
            for _ in range(steps):
                server.advance_time(seconds)
                self.assertTrue(await server.settle())
            for one in ("/api/v1/namespaces/preview", f"{path}/a"):
                self.assertEqual(await ask("GET", one), code)
