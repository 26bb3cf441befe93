"""
Tests for lost, stale and duplicate results under faults of two servers and of the three etcd members that they share.

C{KUBETWIST_TEST_LONG=1} runs two hundred faults; C{KUBETWIST_TEST_SEED} repeats a schedule.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason
from kubetwist.testing.history import Outcome
from kubetwist.testing.historycheck import violations

from .faults import RECOVERY, Faults, LocalClients, Wires

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")

#: Of the schedule that is tried each time.
SEED = 10


@pytest.mark.parametrize("transport", ["grpc", "gateway"])
def test_faults(start_server: Callable[..., SubprocessServer], long: bool, tmp_path: Path, transport: str) -> None:
    """
    Guarantees hold while servers and members are killed, paused, disconnected, left without responses, and compacted.

    Every acknowledged write exists, each write has its expected predecessor, reads through any server are not stale,
    and watches deliver everything once and in order, or end with 410. Afterwards everything recovers automatically.
    """
    named = os.environ.get("KUBETWIST_TEST_SEED")
    seed = int(named) if named else random.randrange(1 << 30) if long else SEED
    with EtcdServer(members=3) as etcd:
        wires = [Wires(etcd.members) for _ in range(2)]
        servers = [
            start_server(
                f"--etcd-servers={','.join(each.urls)}",
                f"--etcd-transport={transport}",
                "--etcd-compaction-interval=15s",
                "--controllers=",
                timeout=RECOVERY,
            )
            for each in wires
        ]
        clients = LocalClients(servers, writers=6, watchers=2, patience=8)
        faults = Faults(random.Random(seed), etcd, servers, wires, clients)
        clients.start()
        try:
            faults.recovered()
            faults.run(200 if long else 25, 5.0 if long else 1.0)
            faults.note("all faults are over")
            for number, server in enumerate(servers):
                await_health(server, f"last-{number}")
            history = clients.finish()
        finally:
            clients.stop()
            (tmp_path / "faults").write_text("\n".join(faults.log_lines))
            for number, server in enumerate(servers):
                (tmp_path / f"log-{number}").write_text(server.output())
            for each in wires:
                each.close()
    found = violations(history)
    outcomes = {outcome: sum(one.outcome is outcome for one in history.operations) for outcome in Outcome}
    expired = sum(bool(watch.ended) for watch in history.watches)
    print(f"seed {seed}: {sum(faults.counts.values())} faults: {dict(faults.counts)}")
    print(f"{len(history.operations)} operations: { {key.value: value for key, value in outcomes.items()} }")
    print(f"{len(history.watches)} watches, {expired} of them ended with 410")
    print(f"{sum(len(watch.events) for watch in history.watches)} events; {tmp_path}")
    if found:
        (tmp_path / "history.jsonl").write_bytes(history.dumped())
    assert not found, f"seed {seed}, {tmp_path}: {len(found)} violations, such as {found[:10]}"
    assert not clients.problems, clients.problems
    # The faults have hit clients at work.
    assert outcomes[Outcome.UNKNOWN] and outcomes[Outcome.DONE] > len(faults.counts)
    assert len(history.watches) > len(clients.watchers)
    for server in servers:
        assert "Traceback" not in server.output(), server.output()


def await_health(server: SubprocessServer, name: str) -> None:
    """Wait until a server is healthy and writes succeed, soon after the last fault."""
    until = time.monotonic() + RECOVERY
    steps: list[Callable[[], int]] = [
        lambda: server.request("GET", "/readyz")[0],
        lambda: server.request("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": name}})[0],
    ]
    for step in steps:
        # A creation whose answer was lost is there when it is tried again.
        while (code := step()) not in (200, 201, 409):
            assert time.monotonic() < until, f"still {code}, {RECOVERY} seconds after the last fault"
            time.sleep(0.05)
