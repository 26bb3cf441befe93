"""Tests for the overview of objects in the page, and for the actions on them, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

APPS = "/apis/apps/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"


@pytest.fixture(scope="module")
def workloads() -> Iterator[SubprocessServer]:
    """A server with workload controllers and two simulated nodes."""
    with SubprocessServer("--in-memory", "--fake-nodes=2", "--controllers=*,+workloads") as server:
        labels = {"app": "web"}
        container = {"name": "web", "image": "nginx:1", "envFrom": [{"configMapRef": {"name": "settings"}}]}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        make(server, f"{CORE}/configmaps", {"metadata": {"name": "settings"}, "data": {"LOG": "debug"}})
        make(server, f"{APPS}/deployments", {"metadata": {"name": "web"}, "spec": spec})
        service = {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80}]}}
        make(server, f"{CORE}/services", service)
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def page(browser: Any, workloads: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, workloads)


def deployment(server: SubprocessServer) -> Any:
    """Return the Deployment."""
    return server.request("GET", f"{APPS}/deployments/web")[1]


def test_workload(page: Page, workloads: SubprocessServer) -> None:
    """A Deployment has its progress, containers, ReplicaSets, pods, history, and the services that select its pods."""
    page.open("#/object/apps/deployments/default/web")
    page.reads("2 of 2", ".details dl")
    page.until(lambda: "nginx:1" in page.text(".details"))
    page.until(lambda: len(page.rows()) == 3, 30)  # a ReplicaSet and two pods
    page.reads("Rollout history")
    page.reads("Services that select its pods")
    page.picture("workload")
    page.find(".inner-table a").click()
    page.until(lambda: page.run("return location.hash").startswith("#/object/apps/replicasets/default/web-"))


def test_actions(page: Page, workloads: SubprocessServer) -> None:
    """An action shows its request before it is sent, and the view follows its effect."""
    page.open("#/object/apps/deployments/default/web")
    page.find("#action-scale").click()
    field = page.find("#field-replicas")
    assert field.get_attribute("value") == "2"
    field.clear()
    field.send_keys("3")
    page.reads("kubectl scale deployments.apps/web --replicas=3 -n default", "#kubectl")
    assert '"replicas": 3' in page.content("#http")
    assert deployment(workloads)["spec"]["replicas"] == 2
    page.picture("action")
    page.find("#run").click()
    page.until(lambda: deployment(workloads)["spec"]["replicas"] == 3)
    page.reads("3 of 3", ".details dl")
    page.find("#action-pause").click()
    page.find("#run").click()
    page.find("#action-resume").click()
    page.find("#run").click()
    page.find("#action-pause")


def test_undo(page: Page, workloads: SubprocessServer) -> None:
    """A Deployment is rolled back to an earlier revision."""
    path = f"{APPS}/deployments/web"
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}}
    workloads.request("PATCH", path, patch, content_type="application/strategic-merge-patch+json")
    annotation = "deployment.kubernetes.io/revision"
    page.until(lambda: deployment(workloads)["metadata"]["annotations"].get(annotation) == "2")
    page.open("#/object/apps/deployments/default/web")
    page.find("button[aria-label='Roll back to it 1']").click()
    page.reads("kubectl rollout undo deployments.apps/web --to-revision=1", "#kubectl")
    page.find("#run").click()

    def image() -> Any:
        return deployment(workloads)["spec"]["template"]["spec"]["containers"][0]["image"]

    page.until(lambda: image() == "nginx:1")
    page.until(lambda: deployment(workloads)["metadata"]["annotations"].get(annotation) == "3")


def test_allowed_actions_only(page: Page, workloads: SubprocessServer) -> None:
    """A user who may only read is offered no action, and may not read Secrets."""
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    subjects = [{"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}]
    make(workloads, f"{CORE}/serviceaccounts", {"metadata": {"name": "viewer"}})
    binding = {"metadata": {"name": "viewer"}, "roleRef": role, "subjects": subjects}
    make(workloads, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    token = make(workloads, f"{CORE}/serviceaccounts/viewer/token", {"spec": {}})["status"]["token"]
    page.sign_in(token)
    page.open("#/object/apps/deployments/default/web")
    page.reads("Rollout history")
    assert page.all(".actions button") == []
    page.open("#/object/-/secrets/default/hidden")
    page.reads("Forbidden", ".problem")
    page.sign_in(workloads.token)


def test_data(page: Page, workloads: SubprocessServer) -> None:
    """Secrets show values on request only, ConfigMaps always, with the pods that use it."""
    make(workloads, f"{CORE}/secrets", {"metadata": {"name": "hidden"}, "stringData": {"password": "hunter2"}})
    page.open("#/object/-/secrets/default/hidden")
    page.reads("••••••••", "#data")
    assert "hunter2" not in page.run("return document.body.innerHTML")
    page.find("button[aria-label='Show password']").click()
    page.reads("hunter2", "#data")
    page.find("button[aria-label='Hide password']").click()
    page.until(lambda: "hunter2" not in page.text("#data"))
    page.open("#/object/-/configmaps/default/settings")
    page.reads("debug", "#data")
    page.reads("Pods that use it")


def test_node_and_pod(page: Page, workloads: SubprocessServer) -> None:
    """A node has its pods, and can be cordoned; a pod is evicted."""
    page.open("#/object/-/nodes/-/pretend-node-0")
    page.reads("schedulable", ".details dl")
    page.find("#action-cordon").click()
    page.find("#run").click()
    page.reads("cordoned", ".details dl")
    page.find("#action-uncordon").click()
    page.find("#run").click()
    page.reads("schedulable", ".details dl")
    name = workloads.request("GET", f"{CORE}/pods?labelSelector=app=web")[1]["items"][0]["metadata"]["name"]
    page.open(f"#/object/-/pods/default/{name}")
    page.reads("Running", ".details dl")
    page.picture("pod")
    page.find("#action-evict").click()
    page.find("#run").click()
    page.until(lambda: workloads.request("GET", f"{CORE}/pods/{name}")[0] == 404)
    page.reads("The object was deleted.", ".details")


def test_cron_job(page: Page, workloads: SubprocessServer) -> None:
    """A CronJob is run now, and its jobs are listed."""
    containers = [{"name": "c", "image": "busybox"}]
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    spec = {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": job}}
    make(workloads, "/apis/batch/v1/namespaces/default/cronjobs", {"metadata": {"name": "night"}, "spec": spec})
    page.open("#/object/batch/cronjobs/default/night")
    page.find("#action-trigger").click()
    page.find("#run").click()
    page.until(lambda: [row[0] for row in page.rows()] == ["night-manual"])
    _, made = workloads.request("GET", "/apis/batch/v1/namespaces/default/jobs/night-manual")
    assert made["metadata"]["ownerReferences"][0]["name"] == "night"
