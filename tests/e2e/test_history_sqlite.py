"""
Tests for lost, stale and duplicate results when the server is killed: the history of all clients is checked.

C{KUBETWIST_TEST_LONG=1} runs a hundred kills; C{KUBETWIST_TEST_SEED} repeats a schedule.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from kubetwist.testing import SubprocessServer
from kubetwist.testing.history import Outcome
from kubetwist.testing.historycheck import violations
from tests.e2e.historyclients import Clients


def test_kills(start_server: Callable[..., SubprocessServer], long: bool, tmp_path: Path) -> None:
    """
    A server that is killed repeatedly during writes keeps its guarantees.

    Every acknowledged write exists, each write has its expected predecessor, reads are never stale, and watches deliver
    everything once and in order, or end with 410.
    """
    seed = int(os.environ.get("KUBETWIST_TEST_SEED") or random.randrange(1 << 30))
    dice = random.Random(seed)
    server = start_server("--storage-backend=sqlite", "--controllers=")
    clients = Clients(lambda: server.connection, "default", writers=6, watchers=2)
    clients.start()
    kills = 100 if long else 10
    for _ in range(kills):
        expected = clients.acknowledged + dice.randrange(5, 150)
        while clients.acknowledged < expected:
            assert not clients.problems, clients.problems
            time.sleep(0.002)
        server.kill()
        server.start()
    history = clients.finish()
    found = violations(history)
    if found:
        (tmp_path / "history.jsonl").write_bytes(history.dumped())
    assert not found, f"seed {seed}, {tmp_path}: {found[:10]}"
    assert not clients.problems, clients.problems
    # The kills have hit clients at work, and the watches were as broken as they look.
    assert sum(operation.outcome is Outcome.UNKNOWN for operation in history.operations) >= kills
    assert len(history.watches) >= kills
    assert "Traceback" not in server.output(), server.output()
