"""Tests of L{kubetwist.flowcontrol.dumps}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.flowcontrol.controller import FlowControl
from kubetwist.flowcontrol.dumps import dump_levels, dump_queues, dump_requests
from kubetwist.flowcontrol.queueset import (
    QueueSetConfig,
    QueueSetRequest,
)
from kubetwist.flowcontrol.scheduler import CooperativeScheduler
from kubetwist.http.requestinfo import request_info_of

PATH = b"/apis/apps/v1/namespaces/n/deployments/d/scale"


def rows(table: str) -> list[list[str]]:
    """Return the cells of a dump."""
    return [[cell.strip() for cell in line.split(",")] for line in table.splitlines()]


class DumpTests(SynchronousTestCase):
    """Dumps of priority and fairness."""

    def setUp(self) -> None:
        """Create the mandatory levels, one of them with two queues."""
        self.clock = Clock()
        self.flow = FlowControl(self.clock, 20, 15.0, CooperativeScheduler(self.clock))
        self.queues = self.flow.levels["catch-all"].queues
        self.queues.adjust(QueueSetConfig(1, 2, 1, 5))

    def make_request(self, user: str) -> QueueSetRequest:
        """Return a request of a user."""
        info = request_info_of(b"GET", PATH)
        assigned = SimpleNamespace(schema=SimpleNamespace(name="catch-all"), flow=user)
        request: Any = SimpleNamespace(apf_classification=assigned, info=info, user=UserInfo(user))
        return QueueSetRequest(request, 1, 0.0)

    def occupy(self, waiting: str = "bob") -> None:
        """Execute a request of alice, and queue another one."""
        self.queues.begin(self.make_request("alice"), 0.0)
        self.assertTrue(self.queues.enqueue(self.make_request(waiting), iter([1])))

    def test_levels(self) -> None:
        """Each level has a row, sorted by name."""
        self.occupy()
        head, catch_all, exempt = rows(dump_levels(self.flow))
        self.assertEqual(
            head[:6],
            ["PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests"],
        )
        self.assertEqual(catch_all[:6], ["catch-all", "1", "false", "false", "1", "1"])
        self.assertEqual(exempt[:6], ["exempt", "0", "true", "false", "0", "0"])

    def test_queues(self) -> None:
        """A queue has a row with its number and the number of its requests."""
        self.occupy()
        [queue] = [row for row in rows(dump_queues(self.flow))[1:] if row[2] != "0"]
        self.assertEqual(queue[:5], ["catch-all", "1", "1", "0", "0"])

    def test_requests(self) -> None:
        """A queued request has a queue index and a position; an executing request that did not wait has none."""
        self.occupy()
        table = rows(dump_requests(self.flow, False, 0.0))[1:]
        self.assertEqual(
            [row[:5] for row in table],
            [
                ["catch-all", "catch-all", "1", "0", "bob"],
                ["catch-all", "catch-all", "-1", "-1", "alice"],
            ],
        )
        self.assertEqual(table[0][-1], "0001-01-01T00:00:00Z")
        self.assertNotEqual(table[1][-1], "0001-01-01T00:00:00Z")

    def test_details(self) -> None:
        """With details a row has the user and the attributes of the request."""
        self.occupy()
        row = rows(dump_requests(self.flow, True, 0.0))[1]
        self.assertEqual(
            row[-8:],
            [
                "bob",
                "get",
                "/apis/apps/v1/namespaces/n/deployments/d/scale",
                "n",
                "d",
                "apps/v1",
                "deployments",
                "scale",
            ],
        )

    def test_unprintable_names(self) -> None:
        """A line break in a name is replaced."""
        self.occupy("b\nob")
        self.assertEqual(len(rows(dump_requests(self.flow, True, 0.0))), 3)
        self.assertIn("b?ob", dump_requests(self.flow, False, 0.0))

    def test_aligned(self) -> None:
        """The columns are aligned."""
        self.occupy()
        for table in (dump_levels(self.flow), dump_requests(self.flow, True, 0.0)):
            lines = table.splitlines()
            begin = lines[0].index(lines[0].split(", ")[1].strip())
            self.assertTrue(all(line[begin - 1] == " " and line[begin] != " " for line in lines), table)
