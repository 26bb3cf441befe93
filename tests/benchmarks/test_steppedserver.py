"""Tests for F{benchmarks/steppedserver.py}: a server that is stepped."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/steppedserver.py")


class ReactorTests(SynchronousTestCase):
    """The reactor alone."""

    def test_wait(self) -> None:
        """A result is returned when the delayed calls before it have run; an exception is raised."""
        reactor = script.SteppedReactor()
        began, good, bad = reactor.seconds(), Deferred[int](), Deferred[int]()
        reactor.callLater(3600, good.callback, 7)
        reactor.callFromThread(bad.errback, KeyError("key"))
        self.assertEqual(7, reactor.wait(good))
        self.assertEqual(3600, reactor.seconds() - began)
        self.assertRaises(KeyError, reactor.wait, bad)

    def test_no_result(self) -> None:
        """Waiting fails if nothing is left to do."""
        self.assertRaises(RuntimeError, script.SteppedReactor().wait, Deferred())

    def test_pending(self) -> None:
        """Pending calls run in the order of their times, except for those that are due much later."""
        reactor = script.SteppedReactor()
        order: list[str] = []
        for delay, name in ((0.02, "soon"), (0.0, "now"), (60.0, "later")):
            reactor.callLater(delay, order.append, name)
        reactor.run_pending()
        self.assertEqual(["now", "soon"], order)

    def test_threads(self) -> None:
        """Work for threads is done at once; its result and its exception reach the reactor."""
        reactor = script.SteppedReactor()
        pool = reactor.getThreadPool()
        self.assertEqual(7, reactor.wait(deferToThreadPool(reactor, pool, int, "7")))
        self.assertRaises(ValueError, reactor.wait, deferToThreadPool(reactor, pool, int, "x"))


class ServerTests(SynchronousTestCase):
    """Requests to a server without sockets and threads."""

    def setUp(self) -> None:
        """Start a server."""
        self.server: Any = script.SteppedServer()
        self.addCleanup(self.server.close)
        self.server.start()

    def test_requests(self) -> None:
        """A written object is read, and a watch on another connection receives its event."""
        server, writer, watcher = self.server, self.server.connect(), self.server.connect()
        path = "/api/v1/namespaces/default/configmaps"
        opened = server.call(watcher, server.message("GET", f"{path}?watch=1"))
        self.assertTrue(opened.startswith(b"HTTP/1.1 200 OK\r\n"), opened)
        body = json.dumps({"metadata": {"name": "one"}, "data": {"key": "value"}}).encode()
        created = server.call(writer, server.message("POST", path, body, Content_Type="application/json"))
        self.assertTrue(created.startswith(b"HTTP/1.1 201 Created\r\n"), created)
        self.assertIn(b'{"type":"ADDED"', watcher.take())
        read = server.call(writer, server.message("GET", f"{path}/one"))
        self.assertEqual({"key": "value"}, json.loads(read.partition(b"\r\n\r\n")[2])["data"])
        self.assertEqual(b"", watcher.take())

    def test_http2(self) -> None:
        """The same requests are sent over HTTP/2, and failures are recognized over both protocols."""
        for with_http2 in (False, True):
            server, client = self.server, self.server.connect(with_http2=with_http2)
            path = "/api/v1/namespaces/default/configmaps"
            body = json.dumps({"metadata": {"name": f"one-{with_http2}".lower()}, "data": {"key": "value"}}).encode()
            create = server.message("POST", path, body, Content_Type="application/json")
            self.assertTrue(client.succeeded(server.call(client, client.message(create))))
            read = server.message("GET", f"{path}/one-{with_http2}".lower())
            answer = server.call(client, client.message(read))
            self.assertTrue(client.succeeded(answer), answer)
            self.assertIn(b'"data":{"key":"value"}', answer)
            repeated: bytes = server.call(client, client.message(create))
            self.assertIn(b"AlreadyExists", repeated)
            self.assertFalse(client.succeeded(repeated))
            self.assertFalse(client.succeeded(b""))
