"""The Helm chart: rendered by the library of Helm, and applied to this server like the manifests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kubetwist.cli.kubeapi import Options
from kubetwist.testing import SubprocessServer

from .files import DEPLOY
from .test_manifests import check_manifests, server_flags

# No importorskip: trial imports this module too, and does not understand its exception.
helm: Any = importlib.import_module("helm_python") if importlib.util.find_spec("helm_python") else None
pytestmark = pytest.mark.skipif(helm is None, reason="helm-python-sdk is not installed")

CHART = DEPLOY / "helm" / "kubetwist"
ETCD: dict[str, Any] = {
    "replicas": 3,
    "storage": {
        "type": "etcd",
        "etcd": {"servers": ["https://etcd-0:2379", "https://etcd-1:2379"], "tlsSecret": "etcd"},
    },
    "keys": {"existingSecret": "keys"},
}
FULL: dict[str, Any] = ETCD | {
    "flags": {"v": 3, "profiling": False, "goaway-chance": 0.001, "feature-gates": "AllBeta=false"},
    "tls": {"servingSecret": "serving"},
    "imagePullSecrets": [{"name": "registry"}],
    "podLabels": {"team": "a"},
    "podAnnotations": {"example.org/note": "b"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "networkPolicy": {"from": [{"namespaceSelector": {}}]},
    "serviceAccount": {"annotations": {"example.org/note": "c"}},
    "service": {"type": "LoadBalancer", "annotations": {"example.org/note": "d"}},
}
VALUES: dict[str, tuple[dict[str, Any], int]] = {"sqlite": ({}, 1), "etcd": (ETCD, 3), "full": (FULL, 3)}
BAD = {
    "several servers over SQLite": ({"replicas": 2}, "needs replicas=1"),
    "no members": ({"storage": {"type": "etcd"}}, "needs storage.etcd.servers"),
    "no keys": ({"storage": ETCD["storage"]}, "needs keys.existingSecret"),
    "unknown value": ({"replica": 1}, "additional properties 'replica' not allowed"),
    "wrong type": ({"replicas": "many"}, "replicas"),
    "unknown storage": ({"storage": {"type": "files"}}, "storage/type"),
}


@pytest.fixture(scope="module")
def chart() -> Iterator[Any]:
    """The loaded chart."""
    with helm.Chart.load(str(CHART)) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def controlled() -> Iterator[SubprocessServer]:
    """A server with all controllers, as of a cluster."""
    with SubprocessServer("--controllers=*,+workloads") as server:
        yield server


def render(chart: Any, values: dict[str, Any]) -> list[Any]:
    """Return the objects that the chart creates, tests included."""
    rendered = chart.render(values, name="demo", namespace="kubetwist")
    texts = [text for path, text in rendered.items() if not path.endswith("NOTES.txt")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def test_lint() -> None:
    """Helm finds nothing wrong in the chart; it only recommends an icon."""
    found = helm.lint(str(CHART))
    assert not found["errors"]
    assert [one["error"] for one in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("name", VALUES)
def test_applied(chart: Any, controlled: SubprocessServer, name: str) -> None:
    """The objects are admitted without warnings, and so are all pods, in a restricted namespace."""
    values, pods = VALUES[name]
    manifests = render(chart, values)
    # The pod of `helm test` is one more.
    check_manifests(controlled, manifests, pods + 1)
    kinds = {one["kind"] for one in manifests}
    assert kinds >= {"Service", "ServiceAccount", "NetworkPolicy", "Pod"}
    assert ("PodDisruptionBudget" in kinds) == (pods > 1)
    options = Options()
    options.parseOptions(server_flags(manifests))
    assert options["external-hostname"] == "demo-kubetwist.kubetwist.svc"


@pytest.mark.parametrize("name", BAD)
def test_refused(chart: Any, name: str) -> None:
    """Values that cannot work are refused, with the reason."""
    values, reason = BAD[name]
    with pytest.raises(helm.HelmError, match=reason):
        render(chart, values)


def test_service_monitor(chart: Any) -> None:
    """The ServiceMonitor has the token, and trusts the shared authority."""
    monitor = {"enabled": True, "tokenSecret": "scraper", "labels": {"release": "prometheus"}}
    (made,) = [one for one in render(chart, ETCD | {"serviceMonitor": monitor}) if one["kind"] == "ServiceMonitor"]
    (endpoint,) = made["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "scraper", "key": "token"}
    assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": "keys", "key": "ca.crt"}
    assert endpoint["tlsConfig"]["serverName"] == "demo-kubetwist.kubetwist.svc"
    assert made["metadata"]["labels"]["release"] == "prometheus"


def test_notes(chart: Any) -> None:
    """The notes have commands for the kind of the workload."""
    for values, kind in (({}, "statefulset"), (ETCD, "deployment")):
        rendered = chart.render(values, name="demo", namespace="kubetwist")
        assert f"rollout status {kind}/demo-kubetwist" in rendered["kubetwist/templates/NOTES.txt"]
