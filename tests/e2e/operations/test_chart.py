"""The Helm chart: rendered by the library of Helm, applied to this server like the manifests, and installed by Helm."""

from __future__ import annotations

import importlib.util
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from kubetwist.cli.kubeapi import Options
from kubetwist.testing import SubprocessServer

from ..pages import DOCS
from .files import DEPLOY, PROJECT
from .test_manifests import TIMEOUT, check_manifests, server_flags, strict_namespace

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


@pytest.fixture(scope="module")
def simulated() -> Iterator[SubprocessServer]:
    """A server with all controllers and simulated nodes."""
    with SubprocessServer("--controllers=*,+workloads", "--fake-nodes=3", timeout=120) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@contextmanager
def ending_pod(server: SubprocessServer, path: str) -> Iterator[None]:
    """Let the simulated kubelet end the containers of a pod with success, as soon as it exists."""
    patch = {"metadata": {"annotations": {"kubetwist.dev/run-seconds": "0"}}}
    done = threading.Event()

    def end() -> None:
        while server.request("PATCH", path, patch, content_type="application/merge-patch+json")[0] != 200:
            if done.wait(0.05):
                return

    thread = threading.Thread(target=end)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("number", [0, 1], ids=["sqlite", "etcd"])
def test_installed(simulated: SubprocessServer, number: int) -> None:
    """Helm installs the chart as on the page, waits for its pods, tests and upgrades the release, and removes it."""
    (script,) = re.findall(r"```shell\n(helm .*?)```", (DOCS / "deployment.md").read_text("utf-8"), re.DOTALL)
    *installs, tested = [shlex.split(line) for line in script.replace("\\\n", "").splitlines()]
    program, action, name, chart, *flags = installs[number]
    assert (program, action, PROJECT / chart, tested) == ("helm", "install", CHART, ["helm", "test", name])
    assert set(flags[::2]) <= {"--set"}
    values = helm.parse_set_string(",".join(flags[1::2])) if flags else {}
    with strict_namespace(simulated) as namespace:
        for secret in ("kubetwist-keys", "kubetwist-etcd-client") if values else ():
            body = {"metadata": {"name": secret}, "stringData": {"key": "x"}}
            assert simulated.request("POST", f"/api/v1/namespaces/{namespace}/secrets", body)[0] == 201
        with helm.Config(kubeconfig_path=simulated.kubeconfig, namespace=namespace) as cluster:
            more = {"namespace": namespace, "wait": "watcher", "timeout": int(TIMEOUT)}
            assert cluster.install(CHART, name, values, **more)["status"] == "deployed"
            pods = simulated.request("GET", f"/api/v1/namespaces/{namespace}/pods")[1]["items"]
            assert len(pods) == values.get("replicas", 1)
            path = f"/api/v1/namespaces/{namespace}/pods/{name}-ready"
            with ending_pod(simulated, path):
                cluster.test(name, timeout=int(TIMEOUT))
            upgraded = cluster.upgrade(CHART, name, values | {"podLabels": {"team": "a"}}, **more)
            assert (upgraded["revision"], upgraded["status"]) == (2, "deployed")
            pods = simulated.request("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector=team=a")[1]["items"]
            assert len(pods) == values.get("replicas", 1)
            cluster.uninstall(name)
            for kind in ("services", "serviceaccounts", "secrets"):
                items = simulated.request("GET", f"/api/v1/namespaces/{namespace}/{kind}")[1]["items"]
                assert not [one for one in items if one["metadata"]["name"] == name or "helm" in one.get("type", "")]
