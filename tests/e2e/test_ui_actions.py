"""Tests for actions on one object and on many in the page, in a real browser."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = "application/merge-patch+json"
#: A script that returns how often the page has asked for a permission.
REVIEWS = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('accessreviews')).length"
HOSTILE = "<img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def server() -> Iterator[SubprocessServer]:
    """A server with workload controllers and two simulated nodes."""
    with SubprocessServer("--in-memory", "--fake-nodes=2", "--controllers=*,+workloads") as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def page(browser: Any, server: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, server)


def get(server: SubprocessServer, path: str) -> Any:
    """Return an object or list."""
    code, found = server.request("GET", path)
    assert code == 200, found
    return found


def names(server: SubprocessServer, path: str) -> list[str]:
    """Return the names of a collection's objects."""
    return [item["metadata"]["name"] for item in get(server, path)["items"]]


def workload(server: SubprocessServer, name: str, replicas: int, **more: Any) -> None:
    """Create a Deployment, and wait until its pods are ready."""
    labels = {"app": name}
    spec = {"containers": [{"name": "c", "image": "nginx:1"}], **more}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    make(server, f"{APPS}/deployments", {"metadata": {"name": name}, "spec": body})


def wait_ready(page: Page, server: SubprocessServer, name: str, replicas: int) -> None:
    """Wait until a Deployment has its ready pods."""
    page.until(lambda: get(server, f"{APPS}/deployments/{name}").get("status", {}).get("readyReplicas") == replicas)


def only(page: Page, words: str) -> None:
    """Show only the rows with these words."""
    page.find("#filter").clear()
    page.find("#filter").send_keys(words)
    page.until(lambda: page.rows() and all(words in " ".join(row) for row in page.rows()))


def selected(page: Page) -> str:
    """Return the announced number of selected rows."""
    return page.text(".selected-count")


def offered(page: Page, bar: str) -> list[str]:
    """Return the names of the offered actions."""
    return [button.text for button in page.all(f"{bar} .actions button")]


def fill(page: Page, row: int, *texts: str) -> None:
    """Write into the fields of a row of a form."""
    found = f".edit-row:nth-child({row}) :is(input, textarea)"
    page.find(found)
    fields = page.all(found)
    for field, text in zip(fields, texts, strict=True):
        field.clear()
        field.send_keys(text)


def finish(page: Page, text: str) -> None:
    """Send the requests of a dialog for many objects, wait for the end, and close it."""
    page.find("#run").click()
    page.reads(text, "dialog")
    page.find("#leave-action").click()
    page.until(lambda: not page.all("dialog"))


def test_selection(page: Page, server: SubprocessServer) -> None:
    """Rows are selected with the keyboard and the mouse; the selection survives updates, and ends with its objects."""
    for name in "abcdef":
        make(server, f"{CORE}/configmaps", {"metadata": {"name": f"pick-{name}"}})
    page.open("#/list/-/configmaps")
    only(page, "pick-")
    page.press("ARROW_DOWN", "x")  # the arrow moves to the table
    page.until(lambda: selected(page) == "1 selected")
    page.press("ARROW_DOWN", "ARROW_DOWN", held="SHIFT")
    page.until(lambda: selected(page) == "3 selected")
    page.press("ARROW_UP", held="SHIFT")
    page.until(lambda: selected(page) == "2 selected")
    page.press("a", held="CONTROL")
    page.until(lambda: selected(page) == "6 selected")
    page.find("th:last-child button").click()
    page.until(lambda: page.all("th[aria-sort]"))
    page.until(lambda: selected(page) == "6 selected")
    page.find("th:last-child button").click()
    page.find("th:last-child button").click()
    page.until(lambda: not page.all("th[aria-sort]"))
    page.run("document.querySelector('.grid').focus()")
    page.press("ESCAPE")
    page.until(lambda: not page.all(".selection-bar:not([hidden])"))
    assert page.run("return location.hash").split("?")[0] == "#/list/-/configmaps"
    ticks = page.all("td.tick input")
    ticks[1].click()
    page.until(lambda: selected(page) == "1 selected")
    click = "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true, shiftKey: true, cancelable: true}))"
    page.run(click, ticks[4])
    page.until(lambda: selected(page) == "4 selected")
    server.request("DELETE", f"{CORE}/configmaps/pick-c")
    page.until(lambda: selected(page) == "3 selected")
    patch = {"metadata": {"labels": {"changed": "yes"}}}
    server.request("PATCH", f"{CORE}/configmaps/pick-b", patch, content_type=MERGE)
    only(page, "pick-b")
    page.until(lambda: selected(page) == "3 selected, 2 hidden by the filter")
    page.find("#clear-selection").click()
    page.until(lambda: not page.all(".selection-bar:not([hidden])"))


def test_delete_many(page: Page, server: SubprocessServer) -> None:
    """Two hundred pods are deleted in one dialog, which shows the commands and the requests before."""
    workload(server, "many", 200, terminationGracePeriodSeconds=0)
    wait_ready(page, server, "many", 200)
    server.request("DELETE", f"{APPS}/deployments/many", {"propagationPolicy": "Orphan"})
    replica_sets = "/apis/apps/v1/namespaces/default/replicasets?labelSelector=app%3Dmany"
    for name in names(server, replica_sets):
        server.request("DELETE", f"{APPS}/replicasets/{name}", {"propagationPolicy": "Orphan"})
    page.open("#/list/-/pods")
    only(page, "many-")
    page.until(lambda: page.text(".count").startswith("200"))
    page.find("th.tick input").click()
    page.until(lambda: selected(page) == "200 selected")
    page.until(lambda: offered(page, ".selection-bar") == ["Delete", "Evict", "Labels", "Annotations"])
    page.picture("selection")
    page.find("#selected-delete").click()
    page.reads("kubectl delete pods/many-", "#kubectl")
    assert page.content("#http").count("DELETE /api/v1/namespaces/default/pods/many-") == 20
    assert "and 180 requests more" in page.content("#http")
    assert len(names(server, f"{CORE}/pods?labelSelector=app%3Dmany")) == 200
    page.find("#run").click()
    page.reads("200 of 200 done.", "dialog")
    page.picture("many-results")
    page.find("#leave-action").click()
    page.until(lambda: names(server, f"{CORE}/pods?labelSelector=app%3Dmany") == [])
    page.until(lambda: not page.all(".selection-bar:not([hidden])"))


def test_failed_stay_selected(page: Page, server: SubprocessServer) -> None:
    """Objects whose request failed stay selected, with the reason in the dialog."""
    for name in ("frail-a", "frail-b", "frail-c"):
        make(server, f"{CORE}/configmaps", {"metadata": {"name": name, "finalizers": ["example.com/keep"]}})
    rule = {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    policy = {
        "metadata": {"name": "keep-frail-b"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "request.name != 'frail-b'", "message": f"frail-b is kept {HOSTILE}"}],
        },
    }
    binding = {
        "metadata": {"name": "keep-frail-b"},
        "spec": {"policyName": "keep-frail-b", "validationActions": ["Deny"]},
    }
    group = "/apis/admissionregistration.k8s.io/v1"
    make(server, f"{group}/validatingadmissionpolicies", policy)
    make(server, f"{group}/validatingadmissionpolicybindings", binding)
    page.until(lambda: server.request("DELETE", f"{CORE}/configmaps/frail-b?dryRun=All")[0] == 422)
    page.open("#/list/-/configmaps")
    only(page, "frail-")
    page.find("th.tick input").click()
    page.find("#selected-delete").click()
    page.find("#run").click()
    page.reads("2 of 3 done, 1 failed.", "dialog")
    assert f"frail-b is kept {HOSTILE}" in page.text("#results .bad")
    assert page.run("return window.hacked") is None
    page.find("#leave-action").click()
    page.until(lambda: selected(page) == "1 selected")
    assert [box.is_selected() for box in page.all("td.tick input")] == [False, True, False]
    page.press("ESCAPE")


def test_many_deployments(page: Page, server: SubprocessServer) -> None:
    """Deployments are scaled, paused and labelled together; those that are paused already are left out."""
    for name in ("fleet-a", "fleet-b"):
        workload(server, name, 0)
    patch = {"spec": {"paused": True}}
    server.request("PATCH", f"{APPS}/deployments/fleet-b", patch, content_type=MERGE)

    def fleet() -> Any:
        return [get(server, f"{APPS}/deployments/fleet-{name}") for name in "ab"]

    page.open("#/list/apps/deployments")
    only(page, "fleet-")
    page.find("th.tick input").click()
    page.find("#selected-scale").click()
    page.find("#field-replicas").send_keys("1")
    page.reads("kubectl scale deployments.apps/fleet-a deployments.apps/fleet-b --replicas=1 -n default", "#kubectl")
    finish(page, "2 of 2 done.")
    assert [one["spec"]["replicas"] for one in fleet()] == [1, 1]
    page.find("th.tick input").click()
    page.find("#selected-pause").click()
    page.reads("1 are left out", "dialog")
    finish(page, "1 of 1 done.")
    assert [one["spec"].get("paused") for one in fleet()] == [True, True]
    page.find("th.tick input").click()
    page.find("#selected-labels").click()
    page.find("button[data-add=rows]").click()
    fill(page, 1, "team/x", "not valid!")
    page.reads("is not a valid value", "#invalid")
    assert not page.find("#run").is_enabled()
    fill(page, 1, "team/x", "blue")
    page.reads("team/x=blue --overwrite", "#kubectl")
    finish(page, "2 of 2 done.")
    assert [one["metadata"]["labels"]["team/x"] for one in fleet()] == ["blue", "blue"]


def signing_request(server: SubprocessServer, name: str) -> None:
    """Create a CertificateSigningRequest."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    request = base64.b64encode(pem.public_bytes(Encoding.PEM)).decode()
    spec = {"request": request, "signerName": "example.com/crowd", "usages": ["client auth"]}
    make(server, REQUESTS, {"metadata": {"name": name}, "spec": spec})


def act_on_all(page: Page, server: SubprocessServer, address: str, words: str, action: str, result: str) -> None:
    """Select all rows with some words, and take an action on them."""
    page.open(address)
    only(page, words)
    page.find("th.tick input").click()
    page.find(f"#selected-{action}").click()
    page.until(lambda: page.find("#run").is_enabled())
    finish(page, result)


def test_many_of_other_kinds(page: Page, server: SubprocessServer) -> None:
    """Pods are evicted, CronJobs suspended, workloads restarted, and signing requests approved together."""
    pod = {"containers": [{"name": "c", "image": "c"}], "terminationGracePeriodSeconds": 0}
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": pod["containers"]}}}
    crons = "/apis/batch/v1/namespaces/default/cronjobs"
    for name in ("crowd-a", "crowd-b"):
        make(server, f"{CORE}/pods", {"metadata": {"name": name}, "spec": pod})
        make(
            server, crons, {"metadata": {"name": name}, "spec": {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": job}}}
        )
        workload(server, name, 0)
    act_on_all(page, server, "#/list/-/pods", "crowd-", "evict", "2 of 2 done.")
    page.until(lambda: not {"crowd-a", "crowd-b"} & set(names(server, f"{CORE}/pods")))
    act_on_all(page, server, "#/list/batch/cronjobs", "crowd-", "suspend", "2 of 2 done.")
    assert [get(server, f"{crons}/crowd-{name}")["spec"]["suspend"] for name in "ab"] == [True, True]
    act_on_all(page, server, "#/list/apps/deployments", "crowd-", "restart", "2 of 2 done.")
    for name in "ab":
        template = get(server, f"{APPS}/deployments/crowd-{name}")["spec"]["template"]
        assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    for name in ("crowd-a", "crowd-b"):
        signing_request(server, name)
    address = "#/list/certificates.k8s.io/certificatesigningrequests"
    act_on_all(page, server, address, "crowd-", "approve", "2 of 2 done.")
    for name in "ab":
        assert get(server, f"{REQUESTS}/crowd-{name}")["status"]["conditions"][0]["type"] == "Approved"


def test_deny(page: Page, server: SubprocessServer) -> None:
    """A signing request is denied; it is then neither approved nor denied again."""
    signing_request(server, "unwanted")
    page.open("#/object/certificates.k8s.io/certificatesigningrequests/-/unwanted")
    page.until(lambda: {"Approve", "Deny"} <= set(offered(page, ".bar")))
    page.find("#action-deny").click()
    page.reads("kubectl certificate deny unwanted", "#kubectl")
    assert "conditions" not in get(server, f"{REQUESTS}/unwanted").get("status", {})
    finish_one(page)
    (condition,) = get(server, f"{REQUESTS}/unwanted")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Denied", "True")
    page.until(lambda: not {"Approve", "Deny"} & set(offered(page, ".bar")))
    page.reads("Denied", ".details")


def test_stop(page: Page, server: SubprocessServer) -> None:
    """After Stop no further request is sent; those that were sent are reported, and the other objects stay selected."""
    for index in range(20):
        make(server, f"{CORE}/configmaps", {"metadata": {"name": f"halted-{index:02}"}})
    page.open("#/list/-/configmaps")
    only(page, "halted-")
    page.until(lambda: len(page.rows()) == 20)
    page.find("th.tick input").click()
    page.find("#selected-delete").click()
    # Deletions wait for the test.
    page.run(
        "const { fetch } = window; window.held = [];"
        "window.fetch = (...request) => request[1]?.method !== 'DELETE' ? fetch(...request)"
        " : new Promise((send) => window.held.push(send)).then(() => fetch(...request))"
    )
    page.find("#run").click()
    page.until(lambda: page.run("return window.held.length") == 6)
    page.find("#stop").click()
    page.run("window.held.forEach((send) => send())")
    page.reads("6 of 20 done", "dialog")
    assert page.run("return window.held.length") == 6
    assert page.text("#results").count(": not sent") == 14
    page.find("#leave-action").click()
    page.until(lambda: selected(page) == "14 selected")
    assert len([name for name in names(server, f"{CORE}/configmaps") if name.startswith("halted-")]) == 14
    page.press("ESCAPE")


def test_labels_and_annotations(page: Page, server: SubprocessServer) -> None:
    """Labels are edited in a form; a change by someone else is not overwritten, unless it does not touch them."""
    path = f"{CORE}/configmaps/marked"
    labels = {"keep": "1", "change": "2", "drop": "3"}
    make(server, f"{CORE}/configmaps", {"metadata": {"name": "marked", "labels": labels}})
    page.open("#/object/-/configmaps/default/marked")
    page.find("#action-labels").click()
    fill(page, 2, "change", "new")
    page.find(".edit-row:nth-child(3) button").click()
    page.reads("kubectl label configmaps/marked change=new drop- --overwrite -n default", "#kubectl")
    page.picture("labels")
    # A change of other parts is no conflict.
    server.request("PATCH", path, {"data": {"a": "b"}}, content_type=MERGE)
    page.find("#run").click()
    page.until(lambda: get(server, path)["metadata"]["labels"] == {"keep": "1", "change": "new"})
    page.until(lambda: not page.all("dialog"))
    page.find("#action-labels").click()
    fill(page, 1, "keep", "mine")
    server.request("PATCH", path, {"metadata": {"labels": {"keep": "theirs"}}}, content_type=MERGE)
    page.find("#run").click()
    page.reads("changed by someone else", "dialog")
    assert get(server, path)["metadata"]["labels"]["keep"] == "theirs"
    page.find("#load-current").click()
    page.until(lambda: page.find(".edit-row:nth-child(1) input:nth-child(2)").get_attribute("value") == "theirs")
    page.find("#leave-action").click()
    page.find("#action-annotations").click()
    page.find("button[data-add=rows]").click()
    fill(page, 1, "example.com/note", "<b>two</b>\nlines")
    page.find("#run").click()
    page.until(lambda: get(server, path)["metadata"].get("annotations") == {"example.com/note": "<b>two</b>\nlines"})


def test_image(page: Page, server: SubprocessServer) -> None:
    """The image of a container is set."""
    workload(server, "picture", 0)
    page.open("#/object/apps/deployments/default/picture")
    page.find("#action-image").click()
    field = page.find("#field-image-c")
    assert not page.find("#run").is_enabled()
    field.clear()
    field.send_keys("nginx:2")
    page.reads("kubectl set image deployments.apps/picture c=nginx:2 -n default", "#kubectl")
    page.find("#run").click()

    def image() -> Any:
        return get(server, f"{APPS}/deployments/picture")["spec"]["template"]["spec"]["containers"]

    page.until(lambda: image()[0]["image"] == "nginx:2")


def test_token(page: Page, server: SubprocessServer) -> None:
    """A token of a ServiceAccount is hidden until it is shown, works, and is forgotten with the dialog."""
    make(server, f"{CORE}/serviceaccounts", {"metadata": {"name": "robot"}})
    page.open("#/object/-/serviceaccounts/default/robot")
    page.find("#action-token").click()
    page.find("#field-seconds").clear()
    page.find("#field-seconds").send_keys("900")
    page.reads("kubectl create token robot --duration=900s -n default", "#kubectl")
    page.find("#run").click()
    page.reads("shown only here", "dialog")
    assert page.text("#secret") == "••••••••"
    page.find("#show-secret").click()
    token = page.text("#secret")
    review = {"spec": {"token": token}}
    code, answer = server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert (code, answer["status"]["user"]["username"]) == (201, "system:serviceaccount:default:robot")
    page.find("#leave-action").click()
    page.until(lambda: not page.all("dialog"))
    stored = page.run("return document.documentElement.outerHTML + JSON.stringify([localStorage, sessionStorage])")
    assert token not in stored


def test_taints(page: Page, server: SubprocessServer) -> None:
    """Taints of a node are added and removed."""
    path = "/api/v1/nodes/pretend-node-0"

    def taints() -> Any:
        return get(server, path)["spec"].get("taints", [])

    page.open("#/object/-/nodes/-/pretend-node-0")
    page.find("#action-taint").click()
    page.find("button[data-add=rows]").click()
    fill(page, 1, "disk", "slow")
    page.reads("kubectl taint nodes pretend-node-0 disk=slow:NoSchedule --overwrite", "#kubectl")
    page.find("#run").click()
    page.until(lambda: taints() == [{"key": "disk", "value": "slow", "effect": "NoSchedule"}])
    page.until(lambda: not page.all("dialog"))
    page.reads("disk", ".details")
    page.find("#action-taint").click()
    page.find(".edit-row button").click()
    page.reads("disk:NoSchedule-", "#kubectl")
    page.find("#run").click()
    page.until(lambda: taints() == [])


def test_drain(page: Page, server: SubprocessServer) -> None:
    """A drain waits for a budget, needs confirmations for what would be lost, and leaves DaemonSets alone."""
    path = f"{CORE}/pods?fieldSelector=spec.nodeName%3Dpretend-node-1"
    on_node = {"nodeSelector": {"kubernetes.io/hostname": "pretend-node-1"}, "terminationGracePeriodSeconds": 0}
    workload(server, "guarded", 1, **on_node)
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "c", "image": "agent"}]}}
    agent = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    make(server, f"{APPS}/daemonsets", {"metadata": {"name": "agent"}, "spec": agent})
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    make(server, budgets, {"metadata": {"name": "guarded"}, "spec": budget})
    lone = {"containers": [{"name": "c", "image": "lone"}], "volumes": [{"name": "v", "emptyDir": {}}], **on_node}
    make(server, f"{CORE}/pods", {"metadata": {"name": "lone"}, "spec": lone})

    def phases() -> list[tuple[str, str | None]]:
        items = get(server, path)["items"]
        return sorted((pod["metadata"]["name"].split("-")[0], pod["status"].get("phase")) for pod in items)

    page.until(lambda: {"agent", "guarded", "lone"} <= {name for name, phase in phases() if phase == "Running"})
    page.until(lambda: get(server, f"{budgets}/guarded").get("status", {}).get("currentHealthy") == 1)
    page.open("#/object/-/nodes/-/pretend-node-1")
    page.find("#action-drain").click()
    page.reads("stays: a DaemonSet manages it", "#results")
    page.reads("has no controller", "#results")
    assert not page.find("#run").is_enabled()
    page.find("#field-force").click()
    assert not page.find("#run").is_enabled()
    page.find("#field-emptyDir").click()
    page.reads("kubectl drain pretend-node-1 --ignore-daemonsets --force --delete-emptydir-data", "#kubectl")
    page.picture("drain")
    page.find("#run").click()
    page.reads("a disruption budget does not allow it yet", "#results")
    page.picture("drain-waits")
    page.until(lambda: "lone" not in dict(phases()))
    assert get(server, "/api/v1/nodes/pretend-node-1")["spec"]["unschedulable"] is True
    assert {"agent", "guarded"} <= set(dict(phases()))
    server.request("PATCH", f"{budgets}/guarded", {"spec": {"minAvailable": 0}}, content_type=MERGE)
    page.until(lambda: "guarded" not in dict(phases()))
    page.reads(" pods have ended.", "dialog")
    page.until(lambda: page.find("#leave-action").is_displayed())
    assert "agent" in dict(phases())
    page.find("#leave-action").click()


def test_drain_stops(page: Page, server: SubprocessServer) -> None:
    """A drain that waits is stopped; the node stays cordoned."""
    on_node = {"nodeSelector": {"kubernetes.io/hostname": "pretend-node-0"}, "terminationGracePeriodSeconds": 0}
    workload(server, "stuck", 1, **on_node)
    wait_ready(page, server, "stuck", 1)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "stuck"}}}
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    make(server, budgets, {"metadata": {"name": "stuck"}, "spec": budget})
    page.until(lambda: get(server, f"{budgets}/stuck").get("status", {}).get("currentHealthy") == 1)
    page.open("#/list/-/nodes")
    only(page, "pretend-node-0")
    page.find("td.tick input").click()
    page.find("#selected-drain").click()
    page.find("#results li")
    for box in page.all("dialog input[type=checkbox]"):
        box.click()
    page.find("#run").click()
    page.reads("a disruption budget does not allow it yet", "#results")
    page.find("#stop").click()
    page.reads("Stopped; the nodes stay cordoned.", "dialog")
    page.find("#leave-action").click()
    assert get(server, "/api/v1/nodes/pretend-node-0")["spec"]["unschedulable"] is True
    page.find("#selected-uncordon").click()
    finish_one(page)
    page.until(lambda: not get(server, "/api/v1/nodes/pretend-node-0")["spec"].get("unschedulable"))


def finish_one(page: Page) -> None:
    """Send the request of a dialog for one object, which then closes."""
    page.until(lambda: page.find("#run").is_enabled())
    page.find("#run").click()
    page.until(lambda: not page.all("dialog"))


def test_permitted_only(page: Page, server: SubprocessServer) -> None:
    """A user is offered what a review permits in the namespaces of the selected rows, asked once for each of them."""
    make(server, "/api/v1/namespaces", {"metadata": {"name": "theirs"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    make(server, f"{CORE}/serviceaccounts", {"metadata": {"name": "cleaner"}})
    subjects = [{"kind": "ServiceAccount", "name": "cleaner", "namespace": "default"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    view = {"metadata": {"name": "cleaner"}, "roleRef": {**reference, "name": "view"}, "subjects": subjects}
    make(server, f"{rbac}/clusterrolebindings", view)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["delete"]}]
    make(server, f"{rbac}/clusterroles", {"metadata": {"name": "cleaner"}, "rules": rules})
    role = {"metadata": {"name": "cleaner"}, "roleRef": {**reference, "name": "cleaner"}, "subjects": subjects}
    make(server, f"{rbac}/namespaces/default/rolebindings", role)
    for namespace in ("default", "theirs"):
        for index in range(3):
            meta = {"metadata": {"name": f"rights-{index}"}}
            make(server, f"/api/v1/namespaces/{namespace}/configmaps", meta)
    token = make(server, f"{CORE}/serviceaccounts/cleaner/token", {"spec": {}})["status"]["token"]
    page.sign_in(token)
    page.open("#/list/-/configmaps")
    only(page, "rights-")
    page.run("performance.clearResourceTimings()")
    page.all("td.tick input")[0].click()
    page.until(lambda: offered(page, ".selection-bar") == ["Delete"])
    page.all("td.tick input")[1].click()
    page.until(lambda: selected(page) == "2 selected")
    # One for deletions, one for patches.
    assert page.run(REVIEWS) == 2
    page.press("a", held="CONTROL")
    page.reads("You may take no action on them.", ".selection-bar")
    assert page.run(REVIEWS) == 4
    page.open("#/list/-/pods")
    page.open("#/object/-/serviceaccounts/default/cleaner")
    page.reads("Metadata")
    assert page.all(".actions button") == []
    page.sign_in(server.token)


def test_many_namespaces(page: Page, server: SubprocessServer) -> None:
    """For rows of more than twenty namespaces, a permission is asked for all namespaces at once."""
    for index in range(21):
        make(server, "/api/v1/namespaces", {"metadata": {"name": f"spread-{index}"}})
    page.open("#/list/-/configmaps")
    only(page, "spread-")
    page.until(lambda: page.text(".count").startswith("21"))
    page.run("performance.clearResourceTimings()")
    page.find("th.tick input").click()
    page.until(lambda: offered(page, ".selection-bar") == ["Delete", "Labels", "Annotations"])
    assert page.run(REVIEWS) == 2
    page.press("ESCAPE")
