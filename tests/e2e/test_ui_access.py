"""Tests for the table of who may do what in the page, in a real browser."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

CORE = "/api/v1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
HOSTILE = "<img src=x onerror=\"document.title='run'\">\u202e'; rm -rf /"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
RESOURCES = (("", "pods"), ("", "secrets"), ("apps", "deployments"), ("", "nodes"))
SUBJECTS: tuple[dict[str, str], ...] = (
    {"kind": "User", "name": "alice", "apiGroup": GROUP},
    {"kind": "User", "name": "bob", "apiGroup": GROUP},
    {"kind": "User", "name": HOSTILE, "apiGroup": GROUP},
    {"kind": "Group", "name": "qa", "apiGroup": GROUP},
    {"kind": "Group", "name": "team:a,b", "apiGroup": GROUP},
    {"kind": "ServiceAccount", "name": "robot", "namespace": "one"},
    {"kind": "ServiceAccount", "name": "robot", "namespace": "two"},
)


def make_bindings(server: SubprocessServer) -> None:
    """Create random roles and bindings, the same in each run."""
    choose = random.Random(30)
    for namespace in ("one", "two"):
        make(server, CORE, {"metadata": {"name": namespace}})
    places = ["", "", "one", "two", "two"]
    for number in range(25):
        namespace = choose.choice(places)
        rules = []
        for _ in range(choose.randrange(1, 3)):
            group, resource = choose.choice(RESOURCES)
            rule: dict[str, Any] = {
                "verbs": choose.sample(VERBS, choose.randrange(1, 5)) if choose.random() < 0.9 else ["*"],
                "apiGroups": [group] if choose.random() < 0.9 else ["*"],
                "resources": [resource] if choose.random() < 0.9 else ["*"],
            }
            if choose.random() < 0.2:
                rule["resourceNames"] = ["only"]
            rules.append(rule)
        inside = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        kind = "Role" if namespace and choose.random() < 0.6 else "ClusterRole"
        where = inside if kind == "Role" else RBAC
        make(server, f"{where}/{kind.lower()}s", {"metadata": {"name": f"random-{number}"}, "rules": rules})
        binding = {
            "metadata": {"name": f"random-{number}"},
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": f"random-{number}"},
            "subjects": choose.sample(SUBJECTS, choose.randrange(1, 3)),
        }
        make(server, f"{inside}/{'role' if namespace else 'clusterrole'}bindings", binding)


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SubprocessServer]:
    """A server with random bindings."""
    with SubprocessServer("--in-memory", "--controllers=", "--authorization-mode=RBAC") as server:
        make_bindings(server)
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def page(browser: Any, bound: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, bound)


def cells(page: Page) -> dict[str, dict[str, str]]:
    """Return what each cell of the table shows, by row and verb."""
    found: list[tuple[str, str, str]] = page.run(
        "return [...document.querySelectorAll('.matrix .cell')]"
        ".map((one) => [one.closest('tr').dataset.row, one.dataset.verb, one.dataset.allowed])"
    )
    table: dict[str, dict[str, str]] = {}
    for row, verb, allowed in found:
        table.setdefault(row, {})[verb] = allowed
    return table


def title(subject: dict[str, str]) -> str:
    """Return the row of a subject."""
    kind = {"User": "user", "Group": "group", "ServiceAccount": "account"}[subject["kind"]]
    name = f"{subject['namespace']}/{subject['name']}" if "namespace" in subject else subject["name"]
    return f"{kind} {name}"


def review(server: SubprocessServer, subject: dict[str, str], attributes: dict[str, str]) -> bool:
    """Return whether the server allows something."""
    if subject["kind"] == "ServiceAccount":
        namespace = subject["namespace"]
        user = f"system:serviceaccount:{namespace}:{subject['name']}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    elif subject["kind"] == "Group":
        user, groups = "member", [subject["name"], "system:authenticated"]
    else:
        user, groups = subject["name"], ["system:authenticated"]
    spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
    return bool(make(server, REVIEWS, {"spec": spec})["status"]["allowed"])


def answer(
    server: SubprocessServer, subject: dict[str, str], group: str, resource: str, verb: str, namespace: str
) -> str:
    """Return what a cell should show."""
    attributes = {"group": group, "resource": resource, "verb": verb, "namespace": namespace}
    if review(server, subject, attributes):
        return "yes"
    return "named" if review(server, subject, {**attributes, "name": "only"}) else "no"


def show(page: Page, **query: str) -> None:
    """Open the table."""
    page.open("")
    page.open(f"#/who?{urlencode(query)}")
    page.until(lambda: page.all(".matrix .cell"))


def test_same_as_server(page: Page, bound: SubprocessServer) -> None:
    """The table of a resource is what the server answers to SubjectAccessReviews."""
    seen = set()
    for (group, resource), namespace in (
        (RESOURCES[0], "one"),
        (RESOURCES[2], "two"),
        (RESOURCES[1], ""),
        (RESOURCES[3], ""),
    ):
        show(page, resource=f"{resource}.{group}" if group else resource, namespace=namespace)
        shown = cells(page)
        for subject in SUBJECTS:
            row = shown[title(subject)]
            for verb in row:
                expected = answer(bound, subject, group, resource, verb, namespace)
                assert row[verb] == expected, (subject, verb, group, resource, namespace)
                seen.add(expected)
    assert seen == {"yes", "named", "no"}


def test_subject(page: Page, bound: SubprocessServer) -> None:
    """The table of a subject has a row for each resource."""
    subject = SUBJECTS[1]
    show(page, by="subject", subject=json.dumps(["User", "bob", ""], separators=(",", ":")), namespace="two")
    shown = cells(page)
    for group, resource in RESOURCES[:3]:
        row = shown[f"{resource}.{group}" if group else resource]
        for verb in ("get", "create", "delete"):
            assert row[verb] == answer(bound, subject, group, resource, verb, "two"), (resource, verb)
    assert "nodes" not in shown
    page.find("#who-filter").send_keys("secret")
    page.until(lambda: list(cells(page)) == ["secrets"])


def press(page: Page, subject: dict[str, str], verb: str) -> None:
    """Press the cell of a subject."""
    page.run(
        "[...document.querySelectorAll('.matrix tr')].find((row) => row.dataset.row === arguments[0])"
        ".querySelector(`[data-verb='${arguments[1]}']`).click()",
        title(subject),
        verb,
    )


def granted(page: Page) -> list[Any]:
    """Return the objects of the proposed grant."""
    return list(yaml.safe_load_all(page.find("#grant-yaml").get_attribute("textContent")))


def test_grant(page: Page, bound: SubprocessServer) -> None:
    """A denied cell proposes a grant; its YAML and its commands create what allows it, for each kind of subject."""
    for subject in (SUBJECTS[0], SUBJECTS[4], SUBJECTS[5], SUBJECTS[2]):
        attributes = {"group": "batch", "resource": "cronjobs", "verb": "deletecollection", "namespace": "one"}
        show(page, resource="cronjobs.batch", namespace="one")
        assert cells(page)[title(subject)]["deletecollection"] == "no"
        press(page, subject, "deletecollection")
        page.reads("may not", "#verdict")
        objects = granted(page)
        command = page.find("#grant-command").get_attribute("textContent")
        assert command.count("kubectl create") == len(objects)
        assert not review(bound, subject, attributes)
        for obj in objects:
            where = f"{RBAC}/namespaces/one" if "namespace" in obj["metadata"] else RBAC
            make(bound, f"{where}/{obj['kind'].lower()}s", obj)
        assert review(bound, subject, attributes)
        show(page, resource="cronjobs.batch", namespace="one")
        assert cells(page)[title(subject)]["deletecollection"] == "yes"
        press(page, subject, "deletecollection")
        page.reads("Allowed by", "dialog")
        page.press("ESCAPE")
    assert "run" not in page.run("return document.title")
    assert page.all(".matrix img, dialog img") == []


def test_review(page: Page) -> None:
    """The grant is handed to the page that applies objects."""
    show(page, resource="pods", namespace="one")
    verb = next(verb for verb, allowed in cells(page)["user alice"].items() if allowed == "no")
    press(page, SUBJECTS[0], verb)
    objects = granted(page)
    assert objects[-1]["subjects"] == [{"kind": "User", "name": "alice", "apiGroup": GROUP}]
    page.picture("access")
    page.find("#review-grant").click()
    page.until(lambda: page.run("return location.hash").startswith("#/apply"))
    page.until(page.edited)
    assert list(yaml.safe_load_all(page.edited())) == objects
    assert page.run("return sessionStorage.getItem('kubetwist-apply')") is None
    page.find("#plan").click()
    page.reads(f"{len(objects)} create", "#plan-summary")


def test_navigation(page: Page) -> None:
    """One link leads to the three pages, which are tabs; Find and addresses lead to each of them."""
    pages = {
        "My permissions": "My permissions",
        "Who may do what": "Who may do what",
        "Explain a decision": "Explain an authorization decision",
    }
    page.open("#/")
    page.find(".card")
    links = page.run("return [...document.querySelectorAll('.side a')].map((one) => one.getAttribute('href'))")
    assert [link for link in links if link in ("#/access", "#/who", "#/why")] == ["#/access"]
    page.find(".side a[href='#/access']").click()
    for tab, heading in pages.items():
        page.until(lambda tab=tab: [link for link in page.all(".access-tabs a") if link.text == tab])[0].click()
        page.reads(heading, "h1")
        page.reads(tab, ".access-tabs [aria-current]")
        page.reads("Access", ".side [aria-current]")
    page.find("#find").click()
    page.find("#find-text").send_keys("who may\n")
    page.reads("Who may do what", "h1")
    page.open("#/why?verb=get&resource=pods&user=alice")
    page.find("#verdict")
    page.reads("Access", ".side [aria-current]")


def test_choices(page: Page) -> None:
    """The table follows the choices, keeps them in the address, and hides subjects of the system."""
    show(page, resource="pods", namespace="one")
    assert not any("system:" in row for row in cells(page))
    page.find("#who-system").click()
    page.until(lambda: any("system:masters" in row for row in cells(page)))
    assert set(cells(page)["group system:masters"].values()) == {"yes"}
    field = page.find("#who-resource")
    field.clear()
    field.send_keys("pods/log\n")
    page.until(lambda: "resource=pods%2Flog" in page.run("return location.hash"))
    namespace = page.find("#who-namespace")
    namespace.clear()
    namespace.send_keys("two\n")
    page.until(lambda: "namespace=two" in page.run("return location.hash"))
    page.browser.refresh()
    page.until(lambda: page.all(".matrix .cell"))
    assert page.run("return document.querySelector('#who-namespace').value") == "two"


def test_own_permissions(page: Page, bound: SubprocessServer) -> None:
    """Users who may not read the bindings see only their permissions, and why."""
    make(bound, f"{CORE}/one/serviceaccounts", {"metadata": {"name": "guest"}})
    token = make(bound, f"{CORE}/one/serviceaccounts/guest/token", {"spec": {}})["status"]["token"]
    page.sign_in(token)
    page.open("#/who")
    page.reads("only your permissions are shown", "#own-only")
    page.reads("selfsubjectrulesreviews", ".plain")
    assert page.all(".matrix") == []
    page.sign_in(bound.token)


def test_no_explanation(page: Page, bound: SubprocessServer) -> None:
    """Users who may read the bindings, but not ask the server, see the rule."""
    make(bound, f"{CORE}/one/serviceaccounts", {"metadata": {"name": "auditor"}})
    resources = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]
    rules = [{"verbs": ["list"], "apiGroups": [GROUP], "resources": resources}]
    make(bound, f"{RBAC}/clusterroles", {"metadata": {"name": "auditor"}, "rules": rules})
    binding = {
        "metadata": {"name": "auditor"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "auditor"},
        "subjects": [{"kind": "ServiceAccount", "name": "auditor", "namespace": "one"}],
    }
    make(bound, f"{RBAC}/clusterrolebindings", binding)
    token = make(bound, f"{CORE}/one/serviceaccounts/auditor/token", {"spec": {}})["status"]["token"]
    page.sign_in(token)
    show(page, resource=f"roles.{GROUP}", namespace="one")
    press(page, {"kind": "ServiceAccount", "name": "auditor", "namespace": "one"}, "list")
    page.reads("ClusterRoleBinding", "dialog")
    page.reads("The server explains decisions to users who", "dialog")
    page.press("ESCAPE")
    page.sign_in(bound.token)


def test_narrow(page: Page) -> None:
    """The choices fit on a small screen, and the table scrolls in its frame."""
    size = page.browser.get_window_size()
    show(page, resource="pods", namespace="one")
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    fits = (
        "const page = document.querySelector('.page').getBoundingClientRect();"
        "return [...document.querySelectorAll('.who-choices :is(input, select), .matrix')]"
        ".every((one) => !one.offsetWidth || one.getBoundingClientRect().right <= page.right)"
    )
    try:
        page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        page.until(lambda: page.run(fits))
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.browser.set_window_size(size["width"], size["height"])
