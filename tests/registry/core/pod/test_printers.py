"""Tests of L{kubetwist.registry.core.pod.printers}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.printers import row_conditions
from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class PodTests(SynchronousTestCase):
    """Tests of rows of Pods."""

    def cells(self, status: dict[str, Any], spec: dict[str, Any] | None = None, **metadata: Any) -> list[Any]:
        """Return the cells of readiness, status and restarts."""
        spec = {"containers": [{"name": "a"}, {"name": "b"}], **(spec or {})}
        return cells("", "Pod", made({"spec": spec, "status": status}, **metadata), NOW)[1:4]

    def container(self, name: str = "a", **state: Any) -> dict[str, Any]:
        """Return the status of a container; C{running={}} makes it ready."""
        return {"name": name, "ready": "running" in state, "restartCount": 0, "state": state}

    def test_phase(self) -> None:
        """The default status is the phase, or the reason."""
        self.assertEqual(self.cells({"phase": "Pending"}), ["0/2", "Pending", "0"])
        self.assertEqual(self.cells({"phase": "Failed", "reason": "Evicted"}), ["0/2", "Evicted", "0"])

    def test_wide(self) -> None:
        """Wide output contains addresses, nodes and readiness gates, or <none>."""
        spec = {
            "containers": [{"name": "a"}],
            "nodeName": "n1",
            "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}],
        }
        status = {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "a", "status": "True"}]}
        shown = cells("", "Pod", made({"spec": spec, "status": status}), NOW)
        self.assertEqual(shown[4:], ["3m", "10.0.0.1", "n1", "<none>", "1/2"])
        self.assertEqual(cells("", "Pod", made(), NOW)[5:], ["<none>"] * 4)

    def test_containers(self) -> None:
        """The status is the reason of the first container that has one."""
        for first, words in (
            ({"waiting": {"reason": "CrashLoopBackOff"}}, "CrashLoopBackOff"),
            ({"terminated": {"reason": "OOMKilled"}}, "OOMKilled"),
            ({"terminated": {"exitCode": 3}}, "ExitCode:3"),
            ({"terminated": {"signal": 9}}, "Signal:9"),
        ):
            status = {
                "phase": "Running",
                "containerStatuses": [self.container(**first), self.container("b", running={})],
            }
            self.assertEqual(self.cells(status), ["1/2", words, "0"])

    def test_completed_beside_running(self) -> None:
        """A pod with a completed and a running container is Running if it is ready, else NotReady."""
        statuses = [self.container(terminated={"reason": "Completed"}), self.container("b", running={})]
        status: dict[str, Any] = {"phase": "Running", "containerStatuses": statuses}
        self.assertEqual(self.cells(status)[1], "NotReady")
        status["conditions"] = [{"type": "Ready", "status": "True"}]
        self.assertEqual(self.cells(status)[1], "Running")

    def test_restarts(self) -> None:
        """Restarts are summed, with the time of the last one."""
        first, second = self.container(running={}), self.container("b", running={})
        first["restartCount"], second["restartCount"] = 1, 2
        status = {"phase": "Running", "containerStatuses": [first, second]}
        self.assertEqual(self.cells(status), ["2/2", "Running", "3"])
        second["lastState"] = {"terminated": {"finishedAt": "2026-01-01T00:02:30Z"}}
        self.assertEqual(self.cells(status), ["2/2", "Running", "3 (30s ago)"])

    def test_init_containers(self) -> None:
        """During initialization the status is the number of completed init containers, or the reason of a failure."""
        spec = {"initContainers": [{"name": "i"}, {"name": "j"}]}
        done = self.container("i", terminated={"exitCode": 0})
        for second, words in (
            ({}, "Init:1/2"),
            ({"waiting": {"reason": "PodInitializing"}}, "Init:1/2"),
            ({"waiting": {"reason": "ErrImagePull"}}, "Init:ErrImagePull"),
            ({"terminated": {"exitCode": 2}}, "Init:ExitCode:2"),
            ({"terminated": {"exitCode": 2, "signal": 9}}, "Init:Signal:9"),
            ({"terminated": {"exitCode": 2, "reason": "Error"}}, "Init:Error"),
        ):
            status = {"phase": "Pending", "initContainerStatuses": [done, self.container("j", **second)]}
            self.assertEqual(self.cells(status, spec), ["0/2", words, "0"])

    def test_sidecars(self) -> None:
        """Sidecars count as ready containers, and their restarts are included."""
        spec = {"initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]}
        sidecar = {**self.container("s", running={}), "started": True, "restartCount": 2}
        done = {**self.container("i", terminated={"exitCode": 0}), "restartCount": 5}
        status = {
            "phase": "Running",
            "initContainerStatuses": [sidecar, done],
            "containerStatuses": [self.container(running={}), self.container("b", running={})],
        }
        self.assertEqual(self.cells(status, spec), ["3/3", "Running", "2"])

    def test_scheduling_gates(self) -> None:
        """A pod with scheduling gates has the status SchedulingGated."""
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
        self.assertEqual(self.cells({"phase": "Pending", "conditions": conditions})[1], "SchedulingGated")

    def test_deletion(self) -> None:
        """A deleted pod is Terminating unless it has ended, or Unknown if its node is lost."""
        deleted = {"deletionTimestamp": "2026-01-01T00:00:01Z"}
        self.assertEqual(self.cells({"phase": "Running"}, **deleted)[1], "Terminating")
        self.assertEqual(self.cells({"phase": "Succeeded"}, **deleted)[1], "Succeeded")
        self.assertEqual(self.cells({"phase": "Running", "reason": "NodeLost"}, **deleted)[1], "Unknown")

    def test_row_conditions(self) -> None:
        """Rows of completed pods have a condition, by which clients hide them."""
        self.assertEqual(row_conditions(made({"status": {"phase": "Running"}})), [])
        (condition,) = row_conditions(made({"status": {"phase": "Failed"}}))
        self.assertEqual((condition["type"], condition["status"], condition["reason"]), ("Completed", "True", "Failed"))
