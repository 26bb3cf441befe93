"""Tests for metrics about etcd and controllers, and for their format."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

from .test_etcd import eventually

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")


def scraped(server: SubprocessServer) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return all samples with their name and labels."""
    code, text = server.request("GET", "/metrics")
    assert code == 200, text
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def value(server: SubprocessServer, series: str, /, **labels: str) -> float | None:
    """Return one sample; L{None} if it does not exist."""
    return scraped(server).get((series, frozenset(labels.items())))


def sizes(server: SubprocessServer, url: str) -> tuple[float, float] | None:
    """Return the size of etcd's database under both names; L{None} while it is unknown."""
    found = scraped(server)
    size = found.get(("apiserver_storage_size_bytes", frozenset({("storage_cluster_id", "etcd-0")})))
    total = found.get(("apiserver_storage_db_total_size_in_bytes", frozenset({("endpoint", url)})))
    return (size, total) if size and total else None


def test_over_etcd(start_server: Callable[..., SubprocessServer]) -> None:
    """
    Controllers run at one of two servers, which has the metrics of their queues; both have metrics of etcd, its
    requests and its size.
    """
    with EtcdServer() as etcd:
        flags = (
            f"--etcd-servers={etcd.urls[0]}",
            "--etcd-db-metric-poll-interval=1s",
            "--show-hidden-metrics-for-version=1.35",
        )
        servers = [start_server(*flags) for _ in range(2)]

        def leading() -> list[SubprocessServer]:
            name = "leader_election_master_status"
            return [one for one in servers if value(one, name, name="kubetwist-controllers") == 1]

        (leader,) = eventually(leading)
        (other,) = [one for one in servers if one is not leader]
        depths = [name for name, _ in scraped(leader) if name == "workqueue_depth"]
        assert len(depths) > 5
        assert not [name for name, _ in scraped(other) if name == "workqueue_depth"]
        for server in servers:
            # Both values are from one scrape, as the size of etcd changes.
            size, total = eventually(lambda server=server: sizes(server, etcd.urls[0]))
            assert total == size > 10_000
            labels = {"grpc_service": "etcdserverpb.KV", "grpc_type": "unary", "grpc_method": "Range"}
            assert (value(server, "grpc_client_handled_total", **labels, grpc_code="OK") or 0) > 0
        code, _ = leader.request(
            "POST",
            "/api/v1/namespaces/default/events",
            {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "R"},
        )
        assert code == 201
        assert (value(leader, "etcd_lease_object_counts_count") or 0) >= 1
