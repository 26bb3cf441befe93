"""Tests that axe-core finds no serious or critical fault in any view of the page, in both themes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

#: The packages that contain axe-core, and the path of it in them; the first one that is installed is used.
PACKAGES = {"axe_playwright_python": "axe.min.js", "selenium_axe_python": "axe-core/axe.min.js"}
#: Impacts that fail the test.
SERIOUS = ("serious", "critical")
#: Options of axe-core; the rule is off by default, but users of speech input need it.
OPTIONS = {"resultTypes": ["violations"], "rules": {"label-content-name-mismatch": {"enabled": True}}}
#: Whether a transition of a colour is in progress.
CHANGES = """
return document.getAnimations()
    .some((one) => one.playState === 'running' && one.effect.getTiming().iterations !== Infinity)
"""
RUN = """
const [options, excluded, done] = arguments;
const context = { include: [['html']], exclude: excluded.map((one) => [one]) };
axe.run(context, options).then(({ violations }) => done(violations.map((one) => ({
    id: one.id, impact: one.impact, nodes: one.nodes.map((node) => `${node.target}: ${node.failureSummary}`),
}))), (error) => done([{ id: String(error), impact: 'critical', nodes: [] }]));
"""
GROUP = "rbac.authorization.k8s.io"
THEMES = ("light", "dark")
LABELS = {"app": "web"}
WEB = "#/object/apps/deployments/default/web"
#: A line of a log in each colour of terminals, also dim and inverse.
COLOURS = (*range(30, 38), *range(90, 98))
LINES = ["plain", *(f"\x1b[{look}{colour}mcolour {colour}\x1b[0m" for look in ("", "2;", "7;") for colour in COLOURS)]
#: The views, by name: their addresses, and the selector of what they show when they are complete.
VIEWS = {
    "overview": ("#/", "#check-now:enabled"),
    "list": ("#/list/-/pods?labels=app%3Dweb,-bad", ".chip.bad"),
    "object": (WEB, "#history"),
    "yaml": (f"{WEB}/yaml", ".yaml"),
    "edit": (f"{WEB}/edit", "yaml-editor"),
    "events": (f"{WEB}/events", ".grid tbody tr:not([aria-hidden])"),
    "graph": (f"{WEB}/graph", ".graph svg"),
    "logs": (f"{WEB}/logs", ".log .line"),
    "apply": ("#/apply", "#plan"),
    "access": ("#/access", "table.plain:not(.stacked)"),
    "who": ("#/who?resource=pods&namespace=default", ".matrix .cell"),
    "why": ("#/why?verb=get&resource=pods&user=x", "#verdict"),
    "plots": ("#/plots", ".chart"),
    "new": ("#/new/-/configmaps", "yaml-editor"),
    "not found": ("#/list/example.com/nothings", ".problem"),
}


def source() -> str | None:
    """Return the script of axe-core, if a package has it, or the file that C{KUBETWIST_TEST_AXE} names."""
    if named := os.environ.get("KUBETWIST_TEST_AXE"):
        return Path(named).read_text("utf-8")
    for package, path in PACKAGES.items():
        found = find_spec(package)
        if found is not None and found.submodule_search_locations:
            return Path(found.submodule_search_locations[0], path).read_text("utf-8")
    return None


AXE = source()
pytestmark = pytest.mark.skipif(AXE is None, reason="axe-core is missing: pip install selenium-axe-python")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SubprocessServer]:
    """A server with a Deployment that has pods, events, a history and a log in all colours."""
    path = tmp_path_factory.mktemp("images") / "images.yaml"
    path.write_text(json.dumps({"images": {"nginx": {"logs": LINES}}}))
    arguments = ("--in-memory", "--fake-nodes=1", "--controllers=*,+workloads", f"--fake-images={path}")
    with SubprocessServer(*arguments) as server:
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
        web = {"metadata": {"name": "web", "labels": LABELS}, "spec": spec}
        make(server, "/apis/apps/v1/namespaces/default/deployments", web)
        role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}
        subjects = [{"kind": "User", "name": "alice", "apiGroup": GROUP}]
        alice = {"metadata": {"name": "alice"}, "roleRef": role, "subjects": subjects}
        make(server, f"/apis/{GROUP}/v1/clusterrolebindings", alice)
        yield server


@pytest.fixture
def page(browser: Any, cluster: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, cluster)


def faults(page: Page, *excluded: str) -> list[str]:
    """Return the serious faults that axe-core finds outside of elements with the excluded selectors."""
    if not page.run("return typeof axe === 'object'"):
        page.run(AXE)
    # Colours that still change are no colours of the page; only the cursor of a terminal blinks for ever.
    page.until(lambda: not page.run(CHANGES))
    found: list[dict[str, Any]] = page.browser.execute_async_script(RUN, OPTIONS, excluded)
    return [f"{one['id']}: {node}" for one in found if one["impact"] in SERIOUS for node in one["nodes"] or [""]]


def in_themes(page: Page, *excluded: str) -> list[str]:
    """Return the serious faults of what is shown, in both themes."""
    found = []
    for theme in THEMES:
        page.run("document.documentElement.dataset.theme = arguments[0]", theme)
        found += [f"{theme}: {one}" for one in faults(page, *excluded)]
    return found


def test_finds_faults(page: Page) -> None:
    """axe-core runs under the policy of the page, and finds what is wrong."""
    page.open("#/access")
    page.find("table.plain:not(.stacked)")
    page.run("document.querySelector('#main').append(document.createElement('input'))")
    assert any(one.startswith("label: ") for one in faults(page))
    page.run("document.querySelector('#main > input').remove()")


def test_sign_in(browser: Any, cluster: SubprocessServer) -> None:
    """The form for signing in has no faults."""
    page = Page(browser, cluster.url)
    page.load()
    page.run("localStorage.clear(); sessionStorage.clear()")
    browser.delete_all_cookies()
    page.load()
    page.find("input[name=token]")
    assert in_themes(page) == []


@pytest.mark.parametrize("view", VIEWS)
def test_view(page: Page, view: str) -> None:
    """No view has faults."""
    address, sign = VIEWS[view]
    page.open(address)
    page.find(sign)
    assert in_themes(page) == []
    if view == "list":
        page.press("/", "app=")
        page.until(lambda: page.all("#completions li"))
        page.press("ARROW_DOWN")
        assert in_themes(page) == []
        page.press("ESCAPE")


@pytest.mark.parametrize(
    ("opener", "sign"),
    [
        ("#find", "dialog.find [role=option]"),
        (".who", "#sign-out"),
        ("#columns", "#default-columns"),
        ("#save-view", "#keep-view"),
    ],
)
def test_dialogs(page: Page, opener: str, sign: str) -> None:
    """No dialog has faults."""
    page.open("#/list/-/pods")
    page.find(".grid")
    page.find(opener).click()
    page.find(sign)
    assert in_themes(page) == []
    page.press("ESCAPE")
    page.until(lambda: not page.all("dialog"))


def test_help(page: Page) -> None:
    """The help has no faults; nor has the question before an object is deleted."""
    page.open(WEB)
    page.find("#history")
    page.press("?")
    page.find(".keytable")
    assert in_themes(page) == []
    page.press("ESCAPE")
    page.until(lambda: not page.all("dialog"))
    page.press("d")
    page.find("#run:enabled")
    assert in_themes(page) == []
    page.press("ESCAPE")


def test_narrow(page: Page) -> None:
    """The drawer of narrow windows has no faults."""
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open("#/list/-/pods")
        page.find(".grid")
        page.find(".drawer").click()
        page.until(lambda: page.find(".side").is_displayed())
        assert in_themes(page) == []
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def close(page: Page) -> None:
    """Close a dialog."""
    page.press("ESCAPE")
    page.until(lambda: not page.all("dialog"))


def test_found(page: Page) -> None:
    """The results of a search have no faults."""
    page.open("#/")
    page.find(".card")
    page.find("#find").click()
    page.find("#find-text").send_keys("web")
    page.until(lambda: page.all("dialog.find a[href='#/object/apps/deployments/default/web']"))
    assert in_themes(page) == []
    close(page)


def test_terminal(page: Page, cluster: SubprocessServer) -> None:
    """A terminal with output of a command has no faults."""
    pod = cluster.request("GET", "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")[1]["items"][0]
    page.open(f"#/object/-/pods/default/{pod['metadata']['name']}/terminal")
    page.find("#connect").click()
    page.reads("Connected", "#terminal-state")
    page.press("echo some output", "ENTER")
    page.until(lambda: page.text(".xterm-rows").count("output") == 2)
    assert in_themes(page) == []


def test_plan(page: Page) -> None:
    """A plan has no faults: with a change, a difference and errors, and after it was carried out."""
    page.open("#/apply")
    page.find("#plan")
    changed = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"paused": False}}
    new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planned"}, "data": {"a": "1"}}
    wrong = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Wrong!"}}
    page.edit("\n---\n".join(json.dumps(one) for one in (changed, new, wrong)))
    page.find("#plan").click()
    page.until(lambda: page.all(".entry[data-state=error]"))
    for entry in page.all(".entry:not([open]) .state"):
        entry.click()
    assert in_themes(page) == []
    page.find("#apply").click()
    page.until(lambda: page.all(".entry[data-state=created]"))
    assert in_themes(page) == []


@pytest.mark.parametrize("action", ["scale", "labels", "image"])
def test_action(page: Page, action: str) -> None:
    """The dialog of an action has no faults."""
    page.open(WEB)
    page.find(f"#action-{action}").click()
    page.find("dialog #run")
    if action == "labels":
        page.find("button[data-add=rows]").click()
    assert in_themes(page) == []
    close(page)


def test_drain(page: Page) -> None:
    """The dialog that drains a node has no faults."""
    page.open("#/object/-/nodes/-/pretend-node-0")
    page.find("#action-drain").click()
    page.find("#results li")
    assert in_themes(page) == []
    close(page)


def test_many(page: Page, cluster: SubprocessServer) -> None:
    """The actions on selected rows have no faults; nor has their dialog, before and after the requests."""
    for name in ("picked-a", "picked-b"):
        make(cluster, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
    page.open("#/list/-/configmaps")
    page.find("#filter").send_keys("picked-")
    page.until(lambda: len(page.rows()) == 2)
    page.find("th.tick input").click()
    page.find("#selected-delete")
    assert in_themes(page) == []
    page.find("#selected-delete").click()
    page.find("dialog #run:enabled")
    assert in_themes(page) == []
    page.find("dialog #run").click()
    page.reads("2 of 2 done.", "dialog")
    assert in_themes(page) == []
    page.find("#leave-action").click()


def test_grant(page: Page) -> None:
    """The explanation of a denied cell, with a grant, has no faults."""
    page.open("#/who?resource=pods&namespace=")
    page.find(".matrix .cell[data-allowed=no]").click()
    page.find("#grant-yaml")
    assert in_themes(page) == []
    close(page)


def test_session_end(page: Page) -> None:
    """The notice before the end of the session has no faults; nor has the dialog to sign in again."""
    page.open("#/")
    page.find(".card")
    page.run(
        "const { fetch } = window; window.fetch = (...request) => String(request[0].url ?? request[0]).endsWith"
        "('/ui/session') ? Promise.resolve(Response.json({ secondsLeft: 200 })) : fetch(...request);"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.find("#sign-in-again")
    assert in_themes(page) == []
    page.find("#sign-in-again").click()
    page.find("dialog input[name=token]")
    assert in_themes(page) == []


def test_swagger(page: Page) -> None:
    """The page of Swagger UI has no faults in what is not part of Swagger UI."""
    page.browser.get(f"{page.url}/swagger-ui/?api=apis/apps/v1")
    page.find(".opblock")
    # The markup of Swagger UI itself has faults.
    assert in_themes(page, "#swagger-ui") == []
