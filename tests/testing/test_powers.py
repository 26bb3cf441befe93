"""Tests for the control of an L{InProcessServer}, on trial's reactor."""

from __future__ import annotations

from pathlib import Path

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.testing.powercase import MAPS, PowerTestCase


class TimeTests(PowerTestCase):
    """C{freeze_time}, C{advance_time}, C{resume_time} and C{reset_clock}."""

    async def test_timestamps(self) -> None:
        """While the clock is frozen, objects get the same creation time; afterwards it continues from there."""
        await self.begin("--controllers=")
        self.server.freeze_time(1_000_000_000)
        first = (await self.make("a"))["metadata"]
        self.server.advance_time(3600)
        second = (await self.make("b"))["metadata"]
        self.assertEqual(first["creationTimestamp"], "2001-09-09T01:46:40Z")
        self.assertEqual(second["creationTimestamp"], "2001-09-09T02:46:40Z")
        self.assertEqual(second["managedFields"][0]["time"], "2001-09-09T02:46:40Z")
        self.server.resume_time()
        self.assertGreaterEqual(self.server.now, 1_000_003_600)
        self.server.reset_clock()
        self.assertGreater(self.server.now, 1_700_000_000)

    async def test_expiry(self) -> None:
        """Events expire by the server's clock."""
        await self.begin("--controllers=", "--event-ttl=1h")
        self.server.freeze_time()
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        path = "/api/v1/namespaces/default/events"
        self.assertEqual((await self.ask("POST", path, event))[0], 201)
        self.server.advance_time(3599)
        self.assertEqual((await self.ask("GET", f"{path}/e"))[0], 200)
        watch = await self.watch(f"{path}?watch=1")
        self.server.advance_time(2)
        while (await deferToThread(watch.event))["type"] != "DELETED":
            pass
        self.assertEqual((await self.ask("GET", f"{path}/e"))[0], 404)

    async def test_tokens(self) -> None:
        """A token expires by the server's clock."""
        await self.begin()
        await self.server.reset()
        request = {"spec": {"expirationSeconds": 600}}
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        _, created = await self.ask("POST", path, request)
        review = {"spec": {"token": created["status"]["token"]}}
        for seconds, good in ((0, True), (500, True), (200, None)):
            self.server.advance_time(seconds)
            _, answer = await self.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
            self.assertEqual(answer["status"].get("authenticated"), good)

    async def test_controllers_use_the_clock(self) -> None:
        """The delays of controllers follow the server's clock."""
        await self.begin()
        await self.server.reset()
        self.server.freeze_time(1_000_000_000)
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "one", "image": "one"}]}}
        path = "/apis/batch/v1/namespaces/default/jobs"
        job = {"metadata": {"name": "done"}, "spec": {"ttlSecondsAfterFinished": 7200, "template": template}}
        _, created = await self.ask("POST", path, job)
        then = created["metadata"]["creationTimestamp"]
        created["status"] = {
            "startTime": then,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": then} for kind in ("FailureTarget", "Failed")
            ],
        }
        code, answer = await self.ask("PUT", f"{path}/done/status", created)
        self.assertEqual(code, 200, answer)
        for seconds, code in ((7100, 200), (200, 404)):
            self.server.advance_time(seconds)
            self.assertTrue(await self.server.settle())
            self.assertEqual((await self.ask("GET", f"{path}/done"))[0], code)

    async def test_reset_rights_the_clock(self) -> None:
        """A reset, and a stop, restore real time."""
        await self.begin()
        self.server.freeze_time(5)
        await self.server.reset()
        self.assertGreater(self.server.now, 1_700_000_000)
        self.server.freeze_time(5)
        await self.server.stop()
        other = await self.startKubeAPI("--controllers=")
        self.assertGreater(other.now, 1_700_000_000)

    async def test_reload_files(self) -> None:
        """A changed file of a flag is in use after C{reload_files}, also while the clock is frozen."""
        path = Path(self.mktemp())
        path.write_text("")
        await self.begin("--controllers=", f"--token-auth-file={path}")
        self.server.freeze_time()
        path.write_text('secret,root,0,"system:masters"\n')
        administrator = self.server.connection.with_token("secret")
        self.assertEqual((await deferToThread(administrator.request, "GET", MAPS))[0], 401)
        await self.server.reload_files()
        self.assertEqual((await deferToThread(administrator.request, "GET", MAPS))[0], 200)

    async def test_watches_outlive_a_frozen_clock(self) -> None:
        """A watch shows changes while the clock is frozen."""
        await self.begin("--controllers=")
        self.server.freeze_time()
        watch = await self.watch(f"{MAPS}?watch=1")
        await self.make("a")
        self.assertEqual((await deferToThread(watch.event))["type"], "ADDED")
        await deferLater(reactor, 0)  # type: ignore[arg-type]
