"""Tests for L{kubetwist.testing._activityrecorder}."""

from __future__ import annotations

from time import perf_counter, time

from twisted.logger import Logger

from kubetwist.testing._activityrecorder import MAX_REQUESTS
from tests.testing.powercase import MAPS, PowerTestCase

_log = Logger()


class ActivityTests(PowerTestCase):
    """C{record_activity} and C{activity_since} of a server."""

    async def test_recorded(self) -> None:
        """Requests, log lines and written namespaces are recorded; those before a moment are left out."""
        await self.begin("--controllers=")
        self.server.record_activity()
        self.server.record_activity()
        started = perf_counter()
        await self.ask("GET", f"{MAPS}/missing?token=abc")
        await self.make("a")
        _log.info("a line of {what}", what="text")
        _log.debug("not this one")
        found = self.server.activity_since(started)
        self.assertEqual(
            [(one.user, one.verb, one.path, one.code) for one in found.requests],
            [
                ("kubetwist-test-admin", "get", f"{MAPS}/missing?token=REDACTED", 404),
                ("kubetwist-test-admin", "create", MAPS, 201),
            ],
        )
        self.assertTrue(all(0 <= one.duration < 60 and abs(one.time - time()) < 60 for one in found.requests))
        self.assertEqual(found.namespaces, ("default",))
        self.assertEqual([line for line in found.lines if "a line of text" in line], list(found.lines[-1:]))
        later = self.server.activity_since(perf_counter())
        self.assertEqual((later.requests, later.lines, later.namespaces), ((), (), ()))

    async def test_impersonated(self) -> None:
        """An impersonated user is shown with the impersonator; the requests of waits are not recorded."""
        await self.begin("--controllers=")
        self.server.record_activity()
        client = self.server.connection.treq()
        await (await client.get(MAPS, headers={"Impersonate-User": "alice"})).content()
        await self.server.wait_for("namespaces/default")
        (found,) = self.server.activity_since(0).requests
        self.assertEqual((found.user, found.code), ("alice (by kubetwist-test-admin)", 403))

    async def test_bounded(self) -> None:
        """The newest requests are kept."""
        await self.begin("--controllers=")
        self.server.record_activity()
        for number in range(MAX_REQUESTS + 5):
            await self.ask("GET", f"{MAPS}/m{number}")
        found = self.server.activity_since(0).requests
        self.assertEqual([one.path for one in found], [f"{MAPS}/m{number}" for number in range(5, MAX_REQUESTS + 5)])

    async def test_stopped(self) -> None:
        """A server that is stopped, or does not record, has no activity."""
        await self.begin("--controllers=")
        self.assertEqual(self.server.activity_since(0).requests, ())
        self.server.record_activity()
        await self.server.stop()
        self.assertEqual(self.server.activity_since(0).requests, ())
