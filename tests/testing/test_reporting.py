"""Tests for L{kubetwist.testing._reporting}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import _reporting
from kubetwist.testing._activity import RecentActivity, ServedRequest
from kubetwist.testing._reporting import (
    MAX_LOG_LINES,
    MAX_OBJECTS,
    Reporter,
    activity_sections,
    last_lines,
    log_section,
    namespaces_of,
)
from tests.testing.powercase import PowerTestCase


class TextTests(SynchronousTestCase):
    """Log lines and requests."""

    def test_requests(self) -> None:
        """Requests are lines with time, user, verb, status, duration and path."""
        requests = (
            ServedRequest(1.5, "alice", "create", "/api/v1/namespaces", 201, 0.0123),
            ServedRequest(2, "", "get", "/livez", 0, 1),
        )
        self.assertEqual(
            activity_sections(RecentActivity(requests, ("one\ntwo",), ())),
            [
                ("server log", ["one", "two"]),
                (
                    "last 2 requests",
                    [
                        "00:00:01.500  alice  create  201  12.3 ms    /api/v1/namespaces",
                        "00:00:02.000  -      get     -    1000.0 ms  /livez",
                    ],
                ),
            ],
        )
        self.assertEqual(activity_sections(RecentActivity((), (), ())), [])

    def test_namespaces(self) -> None:
        """Namespaces of the system are left out; the last one comes first."""
        self.assertEqual(namespaces_of(RecentActivity((), (), ("a", "kube-system", "b"))), ["b", "a"])

    def test_log(self) -> None:
        """The last lines of a log are shown, without the tokens of URLs."""
        self.assertEqual(last_lines(["see https://h:1/ui#token=abc now"]), ["see https://h:1/ui now"])
        lines = last_lines([str(number) for number in range(1000)])
        self.assertEqual((lines[0], lines[-1], len(lines)), ("... (900 earlier lines)", "999", MAX_LOG_LINES + 1))

    def test_file(self) -> None:
        """A log file is read from an offset on, and at most its end."""
        path = Path(self.mktemp())
        self.assertEqual(log_section(path, 0), [])
        path.write_text("one\ntwo\n")
        self.assertEqual(log_section(path, 4), [("server log", ["two"])])
        self.assertEqual(log_section(path, 8), [])
        path.write_bytes(b"\xff" * 1_000_000 + b"\nend\n")
        self.assertEqual(log_section(path, 0)[0][1][-1], "end")
        self.assertLess(len(log_section(path, 0)[0][1][0]), 300)


class ReporterTests(PowerTestCase):
    """L{Reporter} with a server."""

    async def read(self, namespaces: list[str], since: float | None = None) -> dict[str, list[str]]:
        """Return the lines of the sections."""
        return dict(await deferToThread(Reporter(self.server.connection).sections, namespaces, since))

    async def test_namespace(self) -> None:
        """A report has the events and the objects of a namespace, without what each namespace has."""
        await self.begin("--controllers=")
        involved = {"kind": "Pod", "name": "p", "namespace": "default"}
        event = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "Seen", "message": "hello"}
        await self.ask("POST", "/api/v1/namespaces/default/events", event)
        objects: list[Any] = [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"p": "aHVudGVyMg=="}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}},
        ]
        await self.server.load(objects)
        found = await self.read(["default"])
        self.assertEqual(list(found), ["events in namespace default", "objects in namespace default"])
        (line,) = found["events in namespace default"]
        self.assertIn("pod/p  hello", line)
        shown = found["objects in namespace default"]
        self.assertEqual(shown[:3], ["secret/s", "---", "apiVersion: v1"])
        self.assertIn("  p: (masked)", shown)
        self.assertNotIn("aHVudGVyMg==", "\n".join(shown))
        self.assertEqual((await self.read(["missing"]))["objects in namespace missing"], ["none"])

    async def test_bounded(self) -> None:
        """Many objects are cut."""
        await self.begin("--controllers=")
        for number in range(MAX_OBJECTS + 5):
            await self.make(f"m{number}")
        shown = (await self.read(["default"]))["objects in namespace default"]
        self.assertEqual(shown[MAX_OBJECTS], "... (5 more objects)")
        self.assertLess(len(shown), 500)

    async def test_since(self) -> None:
        """Without namespaces, those with new objects are reported."""
        await self.begin("--controllers=")
        await self.make("a")
        self.assertIn("objects in namespace default", await self.read([], self.server.now - 60))
        self.assertEqual(await self.read([], self.server.now + 60), {})
        self.assertEqual(await self.read([]), {})

    async def test_stopped(self) -> None:
        """A server that does not answer is a line of the report."""
        await self.begin("--controllers=")
        self.patch(_reporting, "TIMEOUT", 0.2)
        reporter = Reporter(self.server.connection)
        await self.server.stop()
        ((title, lines),) = await deferToThread(reporter.sections, ["default"])
        self.assertEqual((title, lines), ("objects", ["the server did not answer within 0.2 s"]))
