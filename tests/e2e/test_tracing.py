"""Tests for traces of a server with workers: the spans of its processes are received by a collector as one trace."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubetwist.testing import SubprocessServer

from ..collector import Collected, Collector
from .test_workers import MAPS, config_map, connected

#: The kind of the spans of received requests, also of those from a front to the storage process.
RECEIVED = 2


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A running collector."""
    collector = Collector()
    collector.start()
    yield collector
    collector.stop()


def path_to(collector: Collector, span: Collected) -> list[str]:
    """Return the names of a span and the spans that contain it, the innermost one first."""
    names = [span.name]
    while parents := [one for one in collector.spans if (one.trace_id, one.span_id) == (span.trace_id, span.parent_id)]:
        (span,) = parents
        names.append(span.name)
    return names


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "not sampled"])
def test_storage_process(collector: Collector, tmp_path: Path, sampled: bool) -> None:
    """
    The span of the storage process is within the request of the front that has sent the write.

    Requests that are not sampled have no spans in either process.
    """
    path = tmp_path / "tracing.yaml"
    about = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
    path.write_text(json.dumps({**about, "endpoint": collector.endpoint}))
    traces = [secrets.token_hex(16) for _ in range(2)]
    flags = ("--workers=2", "--storage-backend=sqlite", "--controllers=", f"--tracing-config-file={path}")
    with SubprocessServer(*flags, timeout=120) as server:
        with connected(server) as clients:
            for number, (client, trace) in enumerate(zip(clients, traces, strict=True)):
                parent = f"00-{trace}-{secrets.token_hex(8)}-0{int(sampled)}"
                body = config_map(f"traced-{number}", a="not in spans")
                assert client.ask("POST", MAPS, body, traceparent=parent)[0] == 201
        # The processes send what they have recorded before they end.
        assert server.stop() == 0
        assert "Traceback" not in server.output(), server.output()
    for trace in traces:
        spans = [span for span in collector.spans if span.trace_id == trace]
        if not sampled:
            assert not spans
            continue
        root, commit = sorted((span for span in spans if span.kind == RECEIVED), key=lambda span: span.began)
        assert root.name == "POST /api/v1/namespaces/{:namespace}/configmaps"
        assert commit.attributes["db.system.name"] == "sqlite"
        within = ["sqlite commit", "storage process commit", "Create etcd3", "Create", root.name]
        assert path_to(collector, commit) == within
        assert root.began <= commit.began <= commit.ended <= root.ended
        assert "not in spans" not in str(spans)
