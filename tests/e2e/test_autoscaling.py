"""Tests for F{docs/testing-autoscaling.md}, and for C{kubectl top} and C{kubectl autoscale}."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubetwist.testing import ChildKubeAPI

from .conftest import Kubectl
from .pages import DOCS, run_pytest
from .test_kubectl_reading import columns

EXAMPLES = dict(
    re.findall(
        r"```python\n# (test_\w+\.py)\n(.*?)```", (DOCS / "testing-autoscaling.md").read_text("utf-8"), re.DOTALL
    )
)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(tmp_path: Path, name: str) -> None:
    """Each example of the page passes unchanged."""
    (tmp_path / name).write_text(EXAMPLES[name])
    assert "passed" in run_pytest(tmp_path)


@pytest.fixture
def cluster() -> Iterator[ChildKubeAPI]:
    """A server with simulated nodes."""
    with ChildKubeAPI("--fake-nodes=2", controllers="*,+workloads") as server:
        server.settle()
        yield server


@pytest.mark.kubectl
def test_kubectl(cluster: ChildKubeAPI, tmp_path: Path) -> None:
    """kubectl top and kubectl autoscale follow the usage that tests set."""
    kubectl = Kubectl(Path(cluster.kubeconfig), "default", tmp_path)
    cluster.set_images({"web": {"usage": {"cpu": "150m", "memory": "64Mi"}}})
    kubectl("create", "deployment", "web", "--image=web", "--replicas=2")
    kubectl("set", "resources", "deployment", "web", "--requests=cpu=200m")
    kubectl("rollout", "status", "deployment", "web", "--timeout=30s")

    head, *rows = columns(kubectl("top", "pods"))
    assert head == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert [row[1:] for row in rows] == [["150m", "64Mi"]] * 2
    assert columns(kubectl("top", "pods", "--containers", "--no-headers", "-A"))[0][2:] == ["web", "150m", "64Mi"]
    rows = columns(kubectl("top", "nodes", "--no-headers", "--sort-by=cpu"))
    assert {row[0] for row in rows} == {"pretend-node-0", "pretend-node-1"}
    assert sum(int(row[1].removesuffix("m")) for row in rows) == 300
    missing = kubectl.run("top", "pod", "none")
    assert 'podmetrics.metrics.k8s.io "default/none" not found' in missing.stderr
    assert columns(kubectl("get", "apiservice", "v1beta1.metrics.k8s.io", "--no-headers"))[0][1:3] == ["Local", "True"]

    kubectl("autoscale", "deployment", "web", "--min=1", "--max=10", "--cpu-percent=50")
    cluster.advance_time(30)
    cluster.wait_for("deployments/web", jsonpath="{.status.readyReplicas}=3")
    assert "75%/50%" in kubectl("get", "hpa", "web")
    kubectl("annotate", "pods", "-l", "app=web", "kubetwist.dev/usage-cpu=1")
    assert [row[1] for row in columns(kubectl("top", "pods", "--no-headers"))] == ["1000m"] * 3
    cluster.advance_time(30)
    cluster.wait_for("deployments/web", jsonpath="{.spec.replicas}=6")
    described = kubectl("describe", "hpa", "web")
    assert "SuccessfulRescale" in described
    assert re.search(r"ScalingLimited +True +ScaleUpLimit", described)


def test_without_nodes() -> None:
    """Without simulated nodes nothing of it is served."""
    with ChildKubeAPI(controllers="") as server:
        assert server.request("GET", "/apis/metrics.k8s.io/v1beta1/nodes")[0] == 404
        _, groups = server.request("GET", "/apis")
        assert "metrics.k8s.io" not in [one["name"] for one in groups["groups"]]
