"""Tests that axe-core finds no serious or critical fault in any view of the page, in both themes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make

#: The packages that contain axe-core, and the path of it in them; the first one that is installed is used.
PACKAGES = {"axe_playwright_python": "axe.min.js", "selenium_axe_python": "axe-core/axe.min.js"}
#: Impacts that fail the test.
SERIOUS = ("serious", "critical")
RUN = """
const done = arguments[0];
axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => done(violations.map((one) => ({
    id: one.id, impact: one.impact, nodes: one.nodes.map((node) => `${node.target}: ${node.failureSummary}`),
}))), (error) => done([{ id: String(error), impact: 'critical', nodes: [] }]));
"""
THEMES = ("light", "dark")
LABELS = {"app": "web"}
WEB = "#/object/apps/deployments/default/web"
#: The views, by name: their addresses, and the selector of what they show when they are complete.
VIEWS = {
    "overview": ("#/", ".card"),
    "list": ("#/list/-/pods?labels=app%3Dweb,-bad", ".chip.bad"),
    "object": (WEB, "#history"),
    "yaml": (f"{WEB}/yaml", ".yaml"),
    "edit": (f"{WEB}/edit", "yaml-editor"),
    "events": (f"{WEB}/events", ".grid tbody tr:not([aria-hidden])"),
    "graph": (f"{WEB}/graph", ".graph svg"),
    "logs": (f"{WEB}/logs", "#main select"),
    "access": ("#/access", "table.plain"),
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
def cluster() -> Iterator[SubprocessServer]:
    """A server with a Deployment that has pods, events and a history."""
    with SubprocessServer("--in-memory", "--fake-nodes=1", "--controllers=*,+workloads") as server:
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
        web = {"metadata": {"name": "web", "labels": LABELS}, "spec": spec}
        make(server, "/apis/apps/v1/namespaces/default/deployments", web)
        yield server


@pytest.fixture
def page(browser: Any, cluster: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    page = Page(browser, cluster.url)
    page.go_on(cluster.token, "kubetwist-test-admin")
    return page


def faults(page: Page) -> list[str]:
    """Return the serious faults that axe-core finds."""
    if not page.run("return typeof axe === 'object'"):
        page.run(AXE)
    # Colours that still change are no colours of the page.
    page.until(lambda: page.run("return document.getAnimations().every((one) => one.playState !== 'running')"))
    found: list[dict[str, Any]] = page.browser.execute_async_script(RUN)
    return [f"{one['id']}: {node}" for one in found if one["impact"] in SERIOUS for node in one["nodes"] or [""]]


def in_themes(page: Page) -> list[str]:
    """Return the serious faults of what is shown, in both themes."""
    found = []
    for theme in THEMES:
        page.run("document.documentElement.dataset.theme = arguments[0]", theme)
        found += [f"{theme}: {one}" for one in faults(page)]
    return found


def test_finds_faults(page: Page) -> None:
    """axe-core runs under the policy of the page, and finds what is wrong."""
    page.open("#/access")
    page.find("table.plain")
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
