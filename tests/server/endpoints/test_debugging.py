"""Tests of L{kubetwist.server.endpoints.debugging}, over HTTP."""

from __future__ import annotations

import json
import sys
from threading import Event
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.site import traverse
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.routing import RoutedApp
from kubetwist.server.endpoints.debugging import ProfilesEndpoint

from ...http.harness import Client, filtered_site
from .endpointcase import EndpointCase

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


class DebuggingTests(EndpointCase):
    """Diagnostics of the process."""

    async def test_level(self) -> None:
        """C{-v} can be set at run time; an invalid level is refused."""
        await self.serve()
        verbosity = self.server._service.server.config.options.verbosity
        code, text = await self.ask("PUT", "/debug/flags/v", 5, content_type="text/plain")
        self.assertEqual((code, text), (200, "successfully set klog.logging.verbosity to 5\n"))
        self.assertEqual(verbosity.level, 5)
        self.assertTrue(verbosity.requests)
        code, text = await self.ask("PUT", "/debug/flags/v", "x", content_type="text/plain")
        self.assertEqual(code, 400)
        self.assertTrue(text.startswith("failed set klog.logging.verbosity "), text)
        code, text = await self.ask("PUT", "/debug/flags/v", "9" * 100_000, content_type="text/plain")
        self.assertEqual(code, 400)
        self.assertLess(len(text), 500)
        self.assertEqual(verbosity.level, 5)
        self.assertEqual(await self.ask("GET", "/debug/flags/v"), (406, "unsupported http method\n"))
        code, text = await self.ask("GET", "/debug/flags")
        self.assertIn("<tr>v<br>", text)

    async def test_profiles(self) -> None:
        """There are profiles of the reactor, of objects by type, and of the stacks of all threads."""
        await self.serve()
        code, profile = await self.ask("GET", "/debug/pprof/profile?seconds=1")
        self.assertEqual(code, 200)
        document = profile if isinstance(profile, dict) else json.loads(profile)
        self.assertEqual(document["$schema"], "https://www.speedscope.app/file-format-schema.json")
        self.assertTrue(document["profiles"][0]["samples"])
        code, text = await self.ask("GET", "/debug/pprof/heap")
        self.assertIn(" builtins.dict\n", text)
        code, text = await self.ask("GET", "/debug/pprof/goroutine")
        self.assertIn("delayed calls: ", text)
        self.assertEqual(await self.ask("GET", "/debug/pprof/none"), (404, "Unknown profile\n"))
        code, text = await self.ask("GET", "/debug/pprof/profile?seconds=301")
        self.assertEqual(code, 400)

    async def test_process(self) -> None:
        """The command line is returned as in Go, without passwords; there are no symbols."""
        await self.serve()
        self.patch(sys, "argv", ["/bin/twist", "kubeapi", "--etcd-servers=http://me:secret@a,http://b", "--v=1"])
        for method in ("GET", "POST"):
            code, text = await self.ask(method, "/debug/pprof/cmdline")
            expected = "/bin/twist\0kubeapi\0--etcd-servers=http://CLASSIFIED@a,http://b\0--v=1"
            self.assertEqual((code, text), (200, expected))
        self.assertEqual(await self.ask("POST", "/debug/pprof/symbol"), (200, "num_symbols: 0\n"))
        self.assertEqual(await self.ask("GET", "/debug/pprof/trace"), (404, "Unknown profile\n"))

    async def test_refused(self) -> None:
        """Unauthorized users are refused."""
        await self.serve()
        await self.ask("POST", ACCOUNTS, {"metadata": {"name": "a"}})
        _, answer = await self.ask("POST", f"{ACCOUNTS}/a/token", {"spec": {}})
        token = answer["status"]["token"]
        for path in (
            "/debug/flags/v",
            "/debug/pprof/",
            "/debug/pprof/heap",
            "/debug/pprof/cmdline",
            "/statusz",
            "/flagz",
            "/configz",
        ):
            for method in ("GET", "PUT"):
                code, _ = await self.ask(method, path, token=token)
                self.assertEqual(code, 403, path)

    async def test_off(self) -> None:
        """The paths do not exist with --profiling=false or without their feature gates."""
        await self.serve("--profiling=false", "--feature-gates=ComponentStatusz=false,ComponentFlagz=false")
        for path in ("/debug/flags/v", "/debug/pprof/", "/debug/pprof/heap", "/statusz", "/flagz", "/configz"):
            self.assertEqual(await self.ask("GET", path), (404, "404 page not found\n"), path)


class FakeReactor:
    """A reactor that records calls from threads."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.asked = Event()

    def callFromThread(self, *call: Any) -> None:
        """Record the call."""
        self.calls.append(call)
        self.asked.set()


class OneProfileTests(SynchronousTestCase):
    """Concurrent profiles."""

    def test_one(self) -> None:
        """One profile is taken at a time; it ends when its client disconnects, and another one can be taken."""
        reactor = FakeReactor()
        mux = DelegatingMux("test", NotFound())
        mux.handle_prefix("/debug/pprof", RoutedApp(ProfilesEndpoint(reactor).make_app))
        site = filtered_site(traverse(mux))
        first, second = Client(site), Client(site)
        first.send(b"GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(first.answers(), [])
        answer = second.request("GET", "/debug/pprof/profile?seconds=300")
        self.assertEqual(answer.code, 500)
        self.assertEqual(answer.body, b"Could not enable CPU profiling: cpu profiling already in use\n")
        first.channel.connectionLost(Failure(ConnectionDone()))
        self.assertTrue(reactor.asked.wait(60))
        ((done, body),) = reactor.calls
        done(body)
        second.send(b"GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(second.answers(), [])
        second.channel.connectionLost(Failure(ConnectionDone()))
