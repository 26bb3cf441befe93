"""Tests for the start page: problems, warning events, counts and figures, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

APPS = "/apis/apps/v1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"
HOSTILE = "<img src=x onerror=window.hacked=1>"
PROBES = "kubetwist.dev/fail-probes"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SubprocessServer]:
    """A server with two simulated nodes and two namespaces."""
    with SubprocessServer("--in-memory", "--fake-nodes=2", "--controllers=*,+workloads") as server:
        for name in ("shop", "team"):
            make(server, "/api/v1/namespaces", {"metadata": {"name": name}})
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def page(browser: Any, cluster: SubprocessServer) -> Page:
    """The page, signed in as an administrator, with all namespaces."""
    page = signed_in(browser, cluster)
    page.open("#/?namespace=")
    page.find("#check-now")
    return page


def pod(name: str, image: str = "web", **more: Any) -> dict[str, Any]:
    """Return a pod with a readiness probe."""
    container = {"name": "c", "image": image, "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}, **more}


def deploy(server: SubprocessServer, namespace: str, name: str, image: str, replicas: int = 1) -> None:
    """Create a Deployment."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    make(server, f"{APPS}/{namespace}/deployments", {"metadata": {"name": name}, "spec": spec})


def patch(server: SubprocessServer, path: str, change: Any) -> None:
    """Change an object."""
    code, answer = server.request("PATCH", path, change, content_type=MERGE)
    assert code == 200, answer


def rows(page: Page, section: str = "#problems") -> list[list[str]]:
    """Return the cells of a table of the start page."""
    script = """
        return [...document.querySelectorAll(arguments[0] + ' tbody tr')]
            .map((row) => [...row.cells].map((cell) => cell.textContent));
    """
    found: list[list[str]] = page.run(script, section)
    return found


def reason(page: Page, kind: str, name: str) -> str:
    """Return the reason of the problem of an object; empty if it has none."""
    return next((row[2] for row in rows(page) if row[0] == kind and row[1].startswith(name)), "")


def check(page: Page, kind: str, name: str, expected: str) -> None:
    """Check again until an object has a problem with a reason; none with the empty reason."""

    def checked() -> bool:
        page.run("document.querySelector('#check-now:enabled')?.click()")
        found = reason(page, kind, name)
        return found.startswith(expected) if expected else not found

    page.until(checked)


def test_pods(page: Page, cluster: SubprocessServer) -> None:
    """Pods with missing images, failing containers and failing probes appear, and vanish when they are well again."""
    pods = "/api/v1/namespaces/shop/pods"
    make(cluster, pods, pod("no-image", "pull-error"))
    make(cluster, pods, pod("crash", "false"))
    make(cluster, pods, pod("fine"))
    make(cluster, pods, pod("broken", "false") | {"spec": {**pod("", "false")["spec"], "restartPolicy": "Never"}})
    check(page, "Pod", "no-image", "ImagePullBackOff")
    check(page, "Pod", "crash", "CrashLoopBackOff")
    check(page, "Pod", "broken", "Failed")
    assert reason(page, "Pod", "fine") == ""
    patch(cluster, f"{pods}/fine", {"metadata": {"annotations": {PROBES: "readiness"}}})
    check(page, "Pod", "fine", "Not ready")
    patch(cluster, f"{pods}/fine", {"metadata": {"annotations": {PROBES: None}}})
    check(page, "Pod", "fine", "")
    for name in ("crash", "no-image", "broken"):
        cluster.request("DELETE", f"{pods}/{name}?gracePeriodSeconds=0")
        check(page, "Pod", name, "")
    page.until(lambda: page.all("#no-problems:not([hidden])"))


def test_refreshes(page: Page, cluster: SubprocessServer) -> None:
    """Problems are checked again without a press of the button; a focused row keeps the focus."""
    pods = "/api/v1/namespaces/shop/pods"
    make(cluster, pods, pod("first", "pull-error"))
    check(page, "Pod", "first", "ImagePullBackOff")
    page.run("document.querySelector('#problems tbody a').focus()")
    make(cluster, pods, pod("second", "pull-error"))
    page.until(lambda: reason(page, "Pod", "second"), 90)
    assert page.run("return document.activeElement.textContent") == "first"
    page.press("ENTER")
    page.until(lambda: page.run("return location.hash") == "#/object/-/pods/shop/first")
    for name in ("first", "second"):
        cluster.request("DELETE", f"{pods}/{name}?gracePeriodSeconds=0")


def test_cluster(page: Page, cluster: SubprocessServer) -> None:
    """Workloads, jobs, nodes, APIServices and definitions have their problems; rows lead to objects."""
    deploy(cluster, "shop", "cart", "pull-error", 2)
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "false"}]}}}
    make(
        cluster,
        "/apis/batch/v1/namespaces/shop/jobs",
        {"metadata": {"name": "import"}, "spec": job | {"backoffLimit": 0}},
    )
    patch(cluster, "/api/v1/nodes/pretend-node-1", {"spec": {"unschedulable": True}})
    group = {"group": "x.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    service = {"service": {"namespace": "shop", "name": "nowhere"}, "insecureSkipTLSVerify": True}
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    make(cluster, services, {"metadata": {"name": "v1.x.example.com"}, "spec": {**group, **service}})
    # A definition whose names are taken is not established.
    for plural in ("boats", "ships"):
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"plural": plural, "singular": plural[:-1], "kind": "Boat"}
        spec = {"group": "y.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
        definition = {"metadata": {"name": f"{plural}.y.example.com"}, "spec": spec}
        make(cluster, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    check(page, "Deployment", "cart in shop", "0 of 2 available")
    check(page, "Job", "import", "BackoffLimitExceeded")
    check(page, "Node", "pretend-node-1", "Cordoned")
    check(page, "APIService", "v1.x.example.com", "ServiceNotFound")
    check(page, "CustomResourceDefinition", "ships.y.example.com", "NotAccepted")
    assert reason(page, "CustomResourceDefinition", "boats") == ""
    page.until(lambda: page.all("#figures strong"))
    page.until(lambda: rows(page, "#warnings"))
    page.picture("start")
    page.find("#problems a[href='#/object/apps/deployments/shop/cart']")
    # One namespace has no problems of the cluster, nor of other namespaces.
    page.open("#/?namespace=team")
    page.reads("Namespace team", "h1")
    page.until(lambda: page.all("#no-problems:not([hidden])"))
    page.open("#/?namespace=shop")
    page.until(lambda: reason(page, "Deployment", "cart"))
    assert {row[0] for row in rows(page)} <= {"Deployment", "Job", "Pod"}
    cluster.request("DELETE", f"{services}/v1.x.example.com")
    patch(cluster, "/api/v1/nodes/pretend-node-1", {"spec": {"unschedulable": None}})
    cluster.request("DELETE", f"{APPS}/shop/deployments/cart")
    check(page, "Deployment", "cart", "")


def warning(name: str, **more: Any) -> dict[str, Any]:
    """Return a warning event about a ConfigMap."""
    about = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "team", "name": "settings"}
    event = {"metadata": {"name": name}, "involvedObject": about, "type": "Warning", "reason": "Odd", "message": name}
    return event | {"firstTimestamp": None, "lastTimestamp": None, "eventTime": None} | more


def test_warnings(page: Page, cluster: SubprocessServer) -> None:
    """Warning events are grouped by object and reason, and appear as they happen, from one watch."""
    events = "/api/v1/namespaces/team/events"
    page.open("#/?namespace=team")
    page.reads("No warning events.", "#warnings")
    make(cluster, events, warning("one"))
    make(cluster, events, warning("two", count=4))
    make(cluster, events, warning("normal", type="Normal", reason="Fine"))
    make(cluster, events, warning("old", reason="Old", lastTimestamp="2020-01-01T00:00:00Z"))
    page.until(lambda: [row[:3] for row in rows(page, "#warnings")] == [["ConfigMap settings", "Odd", "5"]])
    cluster.request("DELETE", f"{events}/two")
    page.until(lambda: [row[:3] for row in rows(page, "#warnings")] == [["ConfigMap settings", "Odd", "1"]])
    made = "performance.getEntriesByType('resource').filter((one) => one.name.includes('type%3DWarning')).length"
    before = page.run(f"return {made}")
    make(cluster, events, warning("three", message=HOSTILE, reason=HOSTILE))
    page.until(lambda: [row[1] for row in rows(page, "#warnings")] == [HOSTILE, "Odd"])
    assert page.run(f"return {made}") == before
    assert page.run("return window.hacked") is None


def test_hostile(page: Page, cluster: SubprocessServer) -> None:
    """Messages and reasons of objects are shown as text."""
    condition = {"type": "Ready", "status": "False", "reason": HOSTILE, "message": HOSTILE}
    path = "/api/v1/namespaces/team/pods"
    make(cluster, path, pod("odd") | {"spec": {**pod("")["spec"], "nodeName": "nowhere"}})
    status = {"phase": "Failed", "reason": HOSTILE, "message": f"\x1b[31m{HOSTILE}", "conditions": [condition]}
    patch(cluster, f"{path}/odd/status", {"status": status})
    check(page, "Pod", "odd in team", HOSTILE)
    assert page.run("return window.hacked") is None
    assert page.all("#problems img") == []
    cluster.request("DELETE", f"{path}/odd?gracePeriodSeconds=0")


def token(server: SubprocessServer, user: str, resources: list[str]) -> str:
    """Return a token of a user who may read some resources of namespace "team"."""
    rule = {"apiGroups": ["", "apps"], "resources": resources, "verbs": ["get", "list", "watch"]}
    make(server, f"{RBAC}/namespaces/team/roles", {"metadata": {"name": user}, "rules": [rule]})
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    role = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    binding = {"metadata": {"name": user}, "subjects": [subject], "roleRef": role}
    make(server, f"{RBAC}/namespaces/team/rolebindings", binding)
    return str(server.connection.as_user(user, uid=user).token)


def test_confined(page: Page, cluster: SubprocessServer) -> None:
    """A user of one namespace sees what the user may read, is not offered all namespaces, and is refused once."""
    cluster.request("DELETE", f"{APPS}/team/deployments/queue")
    deploy(cluster, "team", "queue", "pull-error")
    page.sign_in(token(cluster, "dora", ["deployments"]))
    options = "return [...document.querySelectorAll('#namespace option')].map((one) => one.textContent)"
    page.until(lambda: "Choose a namespace" in page.run(options))
    assert "All namespaces" not in page.run(options)
    page.find("#choose-namespace").click()
    page.find("#namespace-name").send_keys("team\n")
    page.until(lambda: reason(page, "Deployment", "queue").startswith("0 of 1 available"))
    assert {row[0] for row in rows(page)} == {"Deployment"}
    assert [one.text for one in page.all(".card small")] == ["deployments"]
    assert not page.find("#warnings").is_displayed()
    assert not page.find("#figures").is_displayed()
    assert page.run(options)[-1] == "Another…"
    assert "All namespaces" not in page.run(options)
    refused = "performance.getEntriesByType('resource').filter((one) => one.responseStatus === 403).length"
    page.until(lambda: page.text("#checked").startswith("checked"))
    before = page.run(f"return {refused}")
    page.find("#check-now").click()
    page.until(lambda: page.all("#check-now:enabled"))
    assert page.run(f"return {refused}") == before
    page.press("k", held="CONTROL")
    page.find("#find-text").send_keys("namespaces")
    page.until(lambda: page.all("dialog [role=option]"))
    assert "All namespaces" not in page.text("dialog")


def test_narrow(page: Page, cluster: SubprocessServer) -> None:
    """At 360 pixels the page does not scroll sideways, and each row shows all of its cells."""
    make(cluster, "/api/v1/namespaces/team/pods", pod("narrow", "pull-error"))
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        check(page, "Pod", "narrow", "ImagePullBackOff")
        wide = """
            return [...document.querySelectorAll('.start, .start .wide-table')]
                .every((one) => one.scrollWidth <= one.clientWidth);
        """
        assert page.run(wide)
        page.picture("start-narrow")
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    cluster.request("DELETE", "/api/v1/namespaces/team/pods/narrow?gracePeriodSeconds=0")
