"""Tests for L{kubetwist.storage.etcd.client} with a program for txaioetcd, which also runs on the library's client."""

from __future__ import annotations

from typing import Any

from txaioetcd import Client

import treq.api
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase
from twisted.web.client import HTTPConnectionPool

from kubetwist.storage.etcd._errors import OUT_OF_RANGE, RPCError
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

from . import thirdparty
from .case import TRANSPORTS, etcd_client
from .cutwire import CutWire


class ThirdPartyTests(TestCase):
    """A program of a third party on each client."""

    skip = etcd_skip_reason() or None

    def etcd(self) -> EtcdServer:
        """Return an etcd without data."""
        etcd = EtcdServer()
        self.addCleanup(etcd.stop)
        return etcd.start()

    def client(self, transport: str) -> Any:
        """Return a client of kubetwist on a separate etcd."""
        client = etcd_client(reactor, self.etcd().urls, transport=transport)
        self.addCleanup(client.close)
        return client

    def original(self) -> Any:
        """Return the client of the library on a separate etcd, which serves the paths of an old gateway."""
        wire = CutWire(reactor, self.etcd().members[0].port)
        wire.rewriting = lambda data: data.replace(b" /v3alpha/", b" /v3/")
        self.addCleanup(wire.cut)
        pool = HTTPConnectionPool(reactor)
        self.addCleanup(pool.closeCachedConnections)
        before = treq.api.get_global_pool()
        treq.api.set_global_pool(pool)
        self.addCleanup(treq.api.set_global_pool, before)
        return Client(reactor, wire.url, pool)

    async def test_same_results(self) -> None:
        """The program has the same results on both transports, and on the client of the library."""
        expected = await thirdparty.run(self.original())
        self.assertEqual(len(expected), 5)
        for transport in TRANSPORTS:
            found = await thirdparty.run(self.client(transport))
            for part, result in expected.items():
                if part == "status":
                    # The leader is another member.
                    result, found[part] = (result[0], *result[3:]), (found[part][0], *found[part][3:])
                self.assertEqual(found[part], result, (transport, part))
        # Callbacks that fail are logged, by the library without a traceback.
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 4 * len(TRANSPORTS))

    async def test_options(self) -> None:
        """Options of reads that the library does not send, and prefixes that it cannot express, have their effect."""
        every = [(b"/o/%d" % number, b"%d" % (9 - number)) for number in range(5)]
        late = [(b"/o/0", b"late"), *every[1:]]
        for transport in TRANSPORTS:
            found = await thirdparty.options(self.client(transport))
            self.assertEqual(
                found,
                [
                    (late[:2], 5),
                    (every[:3], 3),
                    ([(b"/o/0", None)], 5),
                    ([], 5),
                    (late[:2:-1], 5),
                    (sorted(late, key=lambda item: item[1]), 5),
                    ([late[0], *late[3:]], 5),
                    (late[1:3], 5),
                    1,
                    1,
                ],
                transport,
            )

    async def test_end_of_watch(self) -> None:
        """A watch whose first revision is compacted fails; the library's client reports nothing."""
        for transport in TRANSPORTS:
            client = self.client(transport)
            revisions = [(await client.set(b"/a", b"%d" % number)).header.revision for number in range(3)]
            await client.compact(revisions[-1])
            with self.assertRaises(RPCError) as caught:
                await client.watch([b"/a"], self.fail, start_revision=revisions[0])
            self.assertEqual(caught.exception.code, OUT_OF_RANGE)

    async def test_filters(self) -> None:
        """A watch without a first revision has later changes only; filtered changes are not sent."""
        for transport in TRANSPORTS:
            client = self.client(transport)
            await client.set(b"/a", b"0")
            seen: list[Any] = []
            complete: Deferred[None] = Deferred()

            def on_watch(kv: Any, seen: list[Any] = seen, complete: Deferred[None] = complete) -> None:
                seen.append((kv.key, kv.value, kv.previous and kv.previous.value))
                if kv.key == b"/z":
                    complete.callback(None)

            watching = client.watch([b"/a", b"/z"], on_watch, filters=["NODELETE"], return_previous=True)
            begun = client.metrics.of(b"/etcdserverpb.Watch/Watch")
            while begun.received < 2:
                turn: Deferred[None] = Deferred()
                reactor.callLater(0, turn.callback, None)
                await turn
            await client.set(b"/a", b"1")
            await client.delete(b"/a")
            await client.set(b"/a", b"2")
            while len(seen) < 2:
                turn = Deferred()
                reactor.callLater(0, turn.callback, None)
                await turn
            await client.set(b"/z", b"end")
            await complete
            watching.cancel()
            self.assertIsNone(await watching)
            self.assertEqual(seen, [(b"/a", b"1", b"0"), (b"/a", b"2", None), (b"/z", b"end", None)], transport)

    async def test_arguments(self) -> None:
        """Arguments of a wrong type fail the call with C{TypeError}, as in the library."""
        for transport in TRANSPORTS:
            client = self.client(transport)
            for call in (
                lambda client=client: client.set("text", b""),
                lambda client=client: client.get("text"),
                lambda client=client: client.delete(5),
                lambda client=client: client.lease("text"),
                lambda client=client: client.lease(0),
            ):
                with self.assertRaises(TypeError):
                    await call()
