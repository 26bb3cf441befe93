"""Tests of the annotations, and of a server with the controller."""

from __future__ import annotations

from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.testing.trial import KubeAPIMixin
from objectexpiry.annotations import AFTER, AT, expiry_of, parse_duration

NAMESPACES = "/api/v1/namespaces"
CREATED = "2027-01-01T00:00:00Z"
MIDNIGHT = 1_798_761_600.0


class AnnotationsTests(SynchronousTestCase):
    """The annotations of objects."""

    def expiry(self, **annotations: str) -> float | None:
        """Return when an object with C{at} and C{after} expires."""
        names = {"at": AT, "after": AFTER}
        metadata = {"creationTimestamp": CREATED, "annotations": {names[key]: annotations[key] for key in annotations}}
        return expiry_of({"metadata": metadata})

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


class ServerTests(KubeAPIMixin, TestCase):
    """A server with the controller, whose clock the tests set."""

    async def begin(self) -> None:
        """Start a server and create a namespace."""
        self.server = await self.startKubeAPI()
        self.server.freeze_time(MIDNIGHT)
        await self.make(NAMESPACES, "shop")

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request of the administrator."""
        return await deferToThread(self.server.request, method, path, body)

    async def make(self, path: str, name: str, **annotations: str) -> None:
        """Create an object that expires at or after a time."""
        names = {"at": AT, "after": AFTER}
        metadata = {"name": name, "annotations": {names[key]: annotations[key] for key in annotations}}
        code, answer = await self.ask("POST", path, {"metadata": metadata})
        self.assertEqual(code, 201, answer)

    async def advance(self, seconds: float) -> None:
        """Advance the clock, and wait for the controllers."""
        self.server.advance_time(seconds)
        self.assertTrue(await self.server.settle())

    async def names(self, path: str) -> list[str]:
        """Return the names of the objects at a path, without those that a server makes."""
        _, answer = await self.ask("GET", path)
        return [item["metadata"]["name"] for item in answer["items"] if item["metadata"]["name"] != "kube-root-ca.crt"]

    async def test_deleted(self) -> None:
        """Objects are deleted at their times; objects without annotations remain."""
        await self.begin()
        path = f"{NAMESPACES}/shop/configmaps"
        await self.make(path, "first", after="1h")
        await self.make(path, "second", at="2027-01-03T00:00:00Z")
        await self.make(path, "third")
        await self.make(f"{NAMESPACES}/shop/secrets", "secret", after="1h")
        await self.advance(3599)
        self.assertEqual(await self.names(path), ["first", "second", "third"])
        await self.advance(1)
        self.assertEqual(await self.names(path), ["second", "third"])
        self.assertEqual(await self.names(f"{NAMESPACES}/shop/secrets"), [])
        for _ in range(2):
            await self.advance(86400)
        self.assertEqual(await self.names(path), ["third"])

    async def test_namespace(self) -> None:
        """A namespace is deleted with its content."""
        await self.begin()
        await self.make(NAMESPACES, "preview", after="1d")
        await self.make(f"{NAMESPACES}/preview/configmaps", "a")
        await self.advance(86400)
        code, _ = await self.ask("GET", f"{NAMESPACES}/preview/configmaps/a")
        self.assertEqual(code, 404)
        self.assertNotIn("preview", await self.names(NAMESPACES))

    async def test_later(self) -> None:
        """An object whose annotation is changed before its time expires at the new time."""
        await self.begin()
        path = f"{NAMESPACES}/shop/configmaps"
        await self.make(path, "a", after="1h")
        await self.ask("PUT", f"{path}/a", {"metadata": {"name": "a", "annotations": {AFTER: "2h"}}})
        await self.advance(3600)
        self.assertEqual(await self.names(path), ["a"])
        await self.advance(3600)
        self.assertEqual(await self.names(path), [])

    async def test_protected(self) -> None:
        """Namespaces that the cluster needs, and objects in them, do not expire."""
        await self.begin()
        await self.make(f"{NAMESPACES}/default/configmaps", "a", after="0s")
        await self.ask("PUT", f"{NAMESPACES}/default", {"metadata": {"name": "default", "annotations": {AFTER: "0s"}}})
        await self.advance(1)
        self.assertEqual(await self.names(f"{NAMESPACES}/default/configmaps"), ["a"])
        self.assertEqual((await self.ask("GET", f"{NAMESPACES}/default"))[1]["status"]["phase"], "Active")

    async def test_invalid(self) -> None:
        """An object with an invalid annotation remains, and an event gives the reason."""
        await self.begin()
        await self.make(f"{NAMESPACES}/shop/configmaps", "a", after="soon")
        await self.advance(1)
        _, events = await self.ask("GET", f"{NAMESPACES}/shop/events")
        (event,) = (one for one in events["items"] if one["involvedObject"]["name"] == "a")
        message = f"{AFTER}: 'soon' is no duration such as 36h or 1d12h"
        self.assertEqual((event["type"], event["reason"], event["message"]), ("Warning", "InvalidExpiry", message))
        self.assertEqual(await self.names(f"{NAMESPACES}/shop/configmaps"), ["a"])
