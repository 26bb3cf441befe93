"""Tests for L{kubetwist.storage.etcd.client} with a program for txaioetcd, which also runs on the library's client."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from txaioetcd import Client, KeySet, OpSet, Transaction

import treq.api
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase
from twisted.web.client import HTTPConnectionPool

from kubetwist.storage.etcd import client as client_module
from kubetwist.storage.etcd._errors import OUT_OF_RANGE, RPCError
from kubetwist.storage.etcd._methods import WATCH
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

from . import program
from .case import etcd_client
from .cutwire import CutWire


class ThirdPartyTests(TestCase):
    """A program of a third party on the client over gRPC."""

    skip = etcd_skip_reason() or None
    transport = "grpc"

    def etcd(self) -> EtcdServer:
        """Return an etcd without data."""
        etcd = EtcdServer()
        self.addCleanup(etcd.stop)
        return etcd.start()

    def client(self, *urls: str) -> Any:
        """Return a client of kubetwist, by default on a separate etcd."""
        client = etcd_client(reactor, list(urls) or self.etcd().urls, transport=self.transport)
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

    async def until(self, condition: Callable[[], object]) -> None:
        """Run the reactor until a condition is true."""
        while not condition():
            turn: Deferred[None] = Deferred()
            reactor.callLater(0, turn.callback, None)
            await turn

    async def test_same_results(self) -> None:
        """The program has the same results on the client of the library."""
        expected, found = await program.run(self.original()), await program.run(self.client())
        # The leaders are members of different clusters.
        for status in (expected["status"], found["status"]):
            status.pop("leader")
        self.assertEqual(len(expected), 5)
        for part, result in expected.items():
            self.assertEqual(found[part], result, part)
        # Callbacks that fail are logged; the library does not log a failure.
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 4)

    async def test_options(self) -> None:
        """Options of reads that the library does not send, and prefixes that it cannot express, have their effect."""
        every = [(b"/o/%d" % number, b"%d" % (9 - number)) for number in range(5)]
        late = [(b"/o/0", b"late"), *every[1:]]
        self.assertEqual(
            await program.options(self.client()),
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
        )

    async def test_end_of_watch(self) -> None:
        """A watch whose first revision is compacted fails; the library's client reports nothing."""
        client = self.client()
        revisions = [(await client.set(b"/a", b"%d" % number)).header.revision for number in range(3)]
        await client.compact(revisions[-1])
        with self.assertRaises(RPCError) as caught:
            await client.watch([b"/a", b"/b"], self.fail, start_revision=revisions[0])
        self.assertEqual(caught.exception.code, OUT_OF_RANGE)

    async def test_cancelled_by_callback(self) -> None:
        """A callback that cancels its watch is not called again, also for changes of the same revision."""
        client = self.client()
        seen: list[Any] = []
        done = await client.submit(Transaction(success=[OpSet(b"/a", b""), OpSet(b"/b", b"")]))

        def on_watch(kv: Any) -> None:
            seen.append(kv.key)
            watching.cancel()

        watching = client.watch([KeySet(b"/", prefix=True)], on_watch, start_revision=done.header.revision)
        self.assertIsNone(await watching)
        self.assertEqual(seen, [b"/a"])

    async def test_lost_connection(self) -> None:
        """A watch whose connection is lost continues: no change is missing or repeated."""
        etcd = self.etcd()
        wire = CutWire(reactor, etcd.members[0].port)
        self.addCleanup(wire.cut)
        client, other = self.client(wire.url), self.client(*etcd.urls)
        seen: list[int] = []

        def on_watch(kv: Any) -> None:
            seen.append(kv.mod_revision)
            wire.break_connections()

        watching = client.watch([b"/a"], on_watch, start_revision=1)
        revisions = [(await other.set(b"/a", b"")).header.revision for _ in range(3)]
        await self.until(lambda: len(seen) == 3)
        watching.cancel()
        self.assertEqual((seen, await watching), (revisions, None))

    async def test_filters(self) -> None:
        """A watch without a first revision has later changes only; filtered changes are not sent."""
        client = self.client()
        await client.set(b"/a", b"0")
        seen: list[Any] = []
        watching = client.watch(
            [b"/a", b"/z"],
            lambda kv: seen.append((kv.key, kv.value, kv.previous and kv.previous.value)),
            filters=["NODELETE"],
            return_previous=True,
        )
        await self.until(lambda: client.metrics.of(WATCH).received == 2)
        await client.set(b"/a", b"1")
        await client.delete(b"/a")
        await client.set(b"/a", b"2")
        await self.until(lambda: len(seen) == 2)
        await client.set(b"/z", b"end")
        await self.until(lambda: len(seen) == 3)
        watching.cancel()
        self.assertIsNone(await watching)
        self.assertEqual(seen, [(b"/a", b"1", b"0"), (b"/a", b"2", None), (b"/z", b"end", None)])

    async def test_arguments(self) -> None:
        """Arguments of a wrong type fail the call with C{TypeError}, as in the library."""
        client = self.client()
        for call in (
            lambda: client.set("text", b""),
            lambda: client.get("text"),
            lambda: client.delete(5),
            lambda: client.lease("text"),
            lambda: client.lease(0),
        ):
            with self.assertRaises(TypeError):
                await call()


class GatewayThirdPartyTests(ThirdPartyTests):
    """A program of a third party on the client over the gateway."""

    transport = "gateway"


class ConstructorTests(TestCase):
    """The constructor of the library."""

    skip = etcd_skip_reason() or None

    def etcd(self) -> EtcdServer:
        """Return an etcd without data."""
        etcd = EtcdServer()
        self.addCleanup(etcd.stop)
        return etcd.start()

    async def test_constructor(self) -> None:
        """A program that constructs a client as with the library has the same results."""
        client = client_module.Client(reactor, self.etcd().urls[0], timeout=5.0)
        self.addCleanup(client.close)
        other = etcd_client(reactor, self.etcd().urls, transport="grpc")
        self.addCleanup(other.close)
        self.assertEqual(await program.keys(client), await program.keys(other))

    async def test_address_in_environment(self) -> None:
        """Without an address, the client uses the one of the environment, like the library."""
        self.patch(os, "environ", {"ETCD_URL": self.etcd().urls[0]})
        client = client_module.Client(reactor)
        self.addCleanup(client.close)
        await client.set(b"/k", b"value")
        self.assertEqual((await client.get(b"/k")).kvs[0].value, b"value")
