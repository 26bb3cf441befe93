"""Tests for L{kubetwist.testing.requests}."""

from __future__ import annotations

import http.client
from typing import Any

from twisted.internet import reactor
from twisted.internet.threads import deferToThread

from tests.testing.powercase import MAPS, PowerTestCase


class RequestTests(PowerTestCase):
    """C{inject}, C{disturb_watches}, C{end_watches} and C{record_requests}."""

    async def test_inject(self) -> None:
        """
        Matching requests get the injected response the given number of times; all further requests are not affected.
        """
        await self.begin("--controllers=")
        fault = self.server.inject(409, verb="update", resource="configmaps", name="a", times=2)
        created = await self.make("a")
        answers = [await self.ask("PUT", f"{MAPS}/a", created) for _ in range(3)]
        self.assertEqual([code for code, _ in answers], [409, 409, 200])
        self.assertEqual(
            answers[0][1]["message"],
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes '
            "to the latest version and try again",
        )
        self.assertEqual(fault.hits, 2)

    async def test_errors(self) -> None:
        """Errors have the usual reasons of their codes, and a Retry-After header."""
        await self.begin("--controllers=")
        for code, reason in (
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (410, "Expired"),
            (503, "ServiceUnavailable"),
        ):
            with self.server.inject(code, path=MAPS, retry_after=7 if code == 429 else None, message="no"):
                got, status = await self.ask("GET", MAPS)
                self.assertEqual((got, status["reason"], status["message"]), (code, reason, "no"))
                if code == 429:
                    self.assertEqual(status["details"], {"retryAfterSeconds": 7})
        self.assertEqual((await self.ask("GET", MAPS))[0], 200)
        with self.assertRaisesRegex(ValueError, "200 is no error"):
            self.server.inject(200)

    async def test_delay_and_hang_up(self) -> None:
        """A response can be delayed, and a connection closed without a response."""
        await self.begin("--controllers=")
        late = self.server.inject(delay=0.05, resource="configmaps", times=1)
        started = reactor.seconds()  # type: ignore[attr-defined]
        self.assertEqual((await self.ask("GET", MAPS))[0], 200)
        self.assertGreaterEqual(reactor.seconds() - started, 0.05)  # type: ignore[attr-defined]
        self.assertEqual(late.hits, 1)
        with self.server.inject(hang_up=True, where=lambda sent: sent.query.get("limit") == "1"):
            with self.assertRaises((http.client.HTTPException, OSError)):
                await self.ask("GET", f"{MAPS}?limit=1")
            self.assertEqual((await self.ask("GET", f"{MAPS}?limit=2"))[0], 200)

    async def test_watch_expired(self) -> None:
        """An injected 410 for a watch is an ERROR event, as in the server."""
        await self.begin("--controllers=")
        self.server.inject(410, verb="watch", times=1)
        watch = await self.watch(f"{MAPS}?watch=1")
        event = await deferToThread(watch.event)
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))
        self.assertIsNone(await deferToThread(watch.event))

    async def test_disturbed_watches(self) -> None:
        """Events can be dropped, duplicated and delayed, and connections broken."""
        await self.begin("--controllers=")
        fault = self.server.disturb_watches(resource="configmaps", duplicate=True, drop=1, delay=0.01, times=1)
        watch, other = [await self.watch(f"{MAPS}?watch=1") for _ in range(2)]
        for name in "abc":
            await self.make(name)
        names = [(await deferToThread(watch.event))["object"]["metadata"]["name"] for _ in range(4)]
        self.assertEqual(names, ["b", "b", "c", "c"])
        names = [(await deferToThread(other.event))["object"]["metadata"]["name"] for _ in range(3)]
        self.assertEqual((names, fault.hits), (["a", "b", "c"], 1))
        self.server.disturb_watches(break_after=1)
        watch = await self.watch(f"{MAPS}?watch=1&resourceVersion=1")
        self.assertEqual((await deferToThread(watch.event))["object"]["metadata"]["name"], "a")
        with self.assertRaises(http.client.IncompleteRead):
            await deferToThread(watch.response.read)

    async def test_ended_watches(self) -> None:
        """Open watches can be ended with an error, cleanly, or by closing the connection."""
        await self.begin("--controllers=")
        good, expired, cut = [await self.watch(f"{MAPS}?watch=1") for _ in range(3)]
        self.assertEqual(self.server.end_watches(resource="pods"), 0)
        seen = []

        def one_at_a_time(number: int) -> Any:
            return lambda sent: seen.append(sent) or len(seen) == number

        self.assertEqual(self.server.end_watches(where=one_at_a_time(1)), 1)
        self.assertIsNone(await deferToThread(good.event))
        seen.clear()
        self.assertEqual(self.server.end_watches(410, where=one_at_a_time(1)), 1)
        self.assertEqual((await deferToThread(expired.event))["object"]["reason"], "Expired")
        self.assertEqual(self.server.end_watches(hang_up=True), 1)
        with self.assertRaises((http.client.HTTPException, OSError)):
            await deferToThread(cut.response.read)

    async def test_log(self) -> None:
        """A log has the requests with user, body and status, up to its limit."""
        await self.begin("--controllers=")
        with self.server.record_requests(limit=3) as log:
            await self.make("a")
            await self.ask("GET", f"{MAPS}/missing")
            (created,) = log.assert_requested(verb="create", resource="configmaps", namespace="default", times=1)
            self.assertEqual(
                (created.code, created.user, created.json()),
                (201, "kubetwist-test-admin", {"metadata": {"name": "a"}, "data": {"of": "a"}}),
            )
            self.assertEqual([sent.name for sent in log.matching(code=404)], ["missing"])
            with self.assertRaisesRegex(AssertionError, "0 requests with .*'pods'.*\n.*POST .*/configmaps -> 201"):
                log.assert_requested(resource="pods")
            for _ in range(3):
                await self.ask("GET", "/version")
            self.assertEqual([sent.path for sent in log.requests], ["/version"] * 3)
        await self.ask("GET", "/api")
        self.assertEqual(len(log.requests), 3)
        log.clear()
        self.assertEqual(log.requests, [])

    async def test_nothing_in_the_way(self) -> None:
        """Without faults and logs, requests are handled by the original handler."""
        await self.begin("--controllers=")
        site = self.server._service.server.site
        handler = site.handler
        fault, log = self.server.inject(500), self.server.record_requests()
        self.assertIsNot(site.handler, handler)
        fault.remove()
        fault.remove()
        log.stop()
        self.assertIs(site.handler, handler)
