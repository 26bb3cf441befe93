"""Tests for finding, filters, keys, shared addresses and themes of the page, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

HOSTILE = "<img src=x onerror=window.hacked=1>"
#: The width of a small phone, in pixels.
NARROW = 360


def deployment(name: str, **labels: str) -> dict[str, Any]:
    """Return a Deployment of one pod."""
    labels = {"app": name, **labels}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def cluster() -> Iterator[SubprocessServer]:
    """A server with Deployments and their pods in two namespaces."""
    with SubprocessServer("--in-memory", "--fake-nodes=2", "--controllers=*,+workloads") as server:
        make(server, "/api/v1/namespaces", {"metadata": {"name": "team-a"}})
        for namespace in ("default", "team-a"):
            for name, tier in (("web", "front"), ("cache", "back")):
                path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
                make(server, path, deployment(name, tier=tier))
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def page(browser: Any, cluster: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, cluster)


def address(page: Page) -> str:
    """Return the fragment of the address."""
    return str(page.run("return location.hash"))


def names(page: Page, column: int = 1) -> list[str]:
    """Return one cell of each row."""
    return [row[column] for row in page.rows()]


def options(page: Page) -> list[str]:
    """Return what the dialog has found."""
    found: list[str] = page.run(
        "return [...document.querySelectorAll('#found [role=option]')].map((one) => one.textContent)"
    )
    return found


def focused(page: Page) -> str:
    """Return the selector of the focused element: its id, or else its name and class."""
    script = "const one = document.activeElement; return one.id || `${one.tagName.toLowerCase()}.${one.className}`"
    return str(page.run(script))


def test_find(page: Page) -> None:
    """One dialog finds kinds, objects of all kinds by name and label, and commands; it returns the focus."""
    page.open("#/list/-/secrets")
    page.until(lambda: focused(page) == "table.grid")
    page.press("k", held="CONTROL")
    page.find("dialog.find")
    page.press("deploy")
    page.until(lambda: options(page)[:1] == ["deploymentsapps"])
    page.press("ments/WEB")
    page.until(lambda: options(page) == ["webDeployment · default", "webDeployment · team-a"])
    page.press("ESCAPE")
    page.until(lambda: not page.all("dialog"))
    assert focused(page) == "table.grid"
    page.press("k", held="CONTROL")
    page.find("dialog.find")
    page.press("po ns:team-a app=cache")
    page.until(lambda: [one.endswith("Pod · team-a") for one in options(page)] == [True])
    page.press("ENTER")
    page.until(lambda: address(page).startswith("#/object/-/pods/team-a/cache-"))
    page.press("k", held="CONTROL")
    page.find("dialog.find")
    page.press("cache")
    page.until(lambda: len([one for one in options(page) if one.startswith("cache")]) >= 6)
    page.picture("find")
    assert page.text("#found .group").lower() == "objects"
    page.press("ARROW_DOWN", "ENTER")
    page.until(lambda: address(page) == "#/object/apps/deployments/team-a/cache")


def test_find_commands(page: Page) -> None:
    """Commands open views and dialogs, create, choose a theme and a namespace."""

    def command(text: str, option: str) -> None:
        page.find("#find").click()
        page.find("#find-text").send_keys(text)
        page.until(lambda: option in options(page))
        page.run(
            "[...document.querySelectorAll('#found a')].find((one) => one.textContent === arguments[0]).click()",
            option,
        )
        page.until(lambda: not page.all("dialog.find"))

    command("plots", "Plotsgo to")
    page.until(lambda: address(page) == "#/plots")
    command("create config", "Create ConfigMap")
    page.until(lambda: address(page) == "#/new/-/configmaps")
    command("dark", "Theme: dark")
    page.until(lambda: page.run("return document.documentElement.dataset.theme") == "dark")
    command("system", "Theme: as the system")
    command("team", "Namespace: team-a")
    page.until(lambda: address(page) == "#/new/-/configmaps?namespace=team-a")
    command("keys", "Keys")
    page.reads("its logs", "dialog")


def test_find_requests(page: Page) -> None:
    """Opening the dialog asks for no objects; a search asks for lists of metadata once, and a second one uses them."""
    page.open("#/plots")
    page.reads("Latency")
    count = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('limit=500')).length"
    page.run("performance.clearResourceTimings(); performance.setResourceTimingBufferSize(2000)")
    page.press("k", held="CONTROL")
    page.find("dialog.find")
    page.press("cac")
    page.until(lambda: any("cache" in one for one in options(page)))
    page.until(lambda: page.text("dialog.find p") == "")
    asked = page.run(count)
    assert 10 < asked < 100
    page.press("he")
    page.until(lambda: any("cache" in one for one in options(page)))
    page.until(lambda: page.text("dialog.find p") == "")
    assert page.run(count) == asked
    page.press("BACKSPACE", "BACKSPACE", "BACKSPACE", "BACKSPACE", "BACKSPACE", "qqqq")
    page.reads("Nothing found.", "dialog.find p")


def test_hostile_names(page: Page, cluster: SubprocessServer) -> None:
    """Text that looks like HTML is shown as text in results, chips, views and addresses."""
    annotated = {"metadata": {"name": "hostile", "annotations": {"a": HOSTILE}}, "data": {"a": HOSTILE}}
    make(cluster, "/api/v1/namespaces/default/configmaps", annotated)
    page.run(
        "localStorage.setItem(`kubetwist-views:kubetwist-test-admin`, arguments[0])",
        json.dumps(
            [
                {"name": HOSTILE, "address": f"#/list/-/pods?labels={HOSTILE}"},
                7,
                {"name": "no", "address": "javascript:1"},
            ]
        ),
    )
    page.load()
    page.reads(HOSTILE, ".side")
    assert [one.text for one in page.all(".side .view a")] == [HOSTILE]
    page.find(".side .view a").click()
    page.reads("Invalid selector", ".chipbar")
    page.press("k", held="CONTROL")
    page.find("dialog.find")
    page.press(HOSTILE)
    page.until(lambda: page.all("#found"))
    page.press("ESCAPE")
    assert page.run("return window.hacked") is None
    assert page.all("#main img, .side img, dialog img") == []
    page.run("localStorage.removeItem('kubetwist-views:kubetwist-test-admin')")


def test_confined_user(browser: Any, cluster: SubprocessServer) -> None:
    """A user with permissions in one namespace finds what is there, and is refused nothing."""
    make(cluster, "/api/v1/namespaces/team-a/serviceaccounts", {"metadata": {"name": "reader"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a"
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "team-a"}],
    }
    make(cluster, f"{rbac}/rolebindings", binding)
    token = make(cluster, "/api/v1/namespaces/team-a/serviceaccounts/reader/token", {"spec": {}})["status"]["token"]
    page = Page(browser, cluster.url)
    page.sign_in(token)
    page.until(lambda: page.run("return document.querySelector('#namespace').value") == "team-a")
    # Without the requests of the start page, which finds out what the user may read.
    page.open("#/list/apps/deployments")
    page.until(lambda: len(page.rows()) == 2)
    page.run("performance.clearResourceTimings(); performance.setResourceTimingBufferSize(2000)")
    page.press("k", held="CONTROL")
    page.find("dialog.find")
    page.press("web")
    page.until(lambda: "webDeployment · team-a" in options(page))
    page.until(lambda: page.text("dialog.find p") == "")
    assert [one for one in options(page) if "default" in one or "Create" in one] == []
    entries = "performance.getEntriesByType('resource')"
    assert page.run(f"return {entries}.filter((one) => one.responseStatus >= 400).map((one) => one.name)") == []
    # An address of another namespace shows it, with the refusal.
    page.press("ESCAPE")
    page.open("#/list/-/pods?namespace=default")
    page.reads("Forbidden", ".problem")
    page.run("localStorage.clear(); sessionStorage.clear()")


def test_chips(page: Page, cluster: SubprocessServer) -> None:
    """Selectors are completed from labels and fields, are chips, and are sent to the server; words filter the rows."""
    page.open("#/list/-/pods")
    page.until(lambda: len(page.rows()) == 4)
    page.press("/", "ti")
    page.until(lambda: "tier=" in page.text("#completions"))
    page.press("ARROW_DOWN", "ENTER")
    page.until(lambda: page.text("#completions").split() == ["tier=back", "tier=front"])
    page.press("ARROW_DOWN", "ARROW_DOWN", "ENTER")
    page.until(lambda: [row[1][:4] for row in page.rows()] == ["web-", "web-"])
    page.reads("tier=front", ".chipbar")
    assert address(page) == "#/list/-/pods?labels=tier%3Dfront"
    # So does the watch: an object whose labels change leaves, and comes back.
    pods = "/api/v1/namespaces/default/pods"
    name = names(page)[0]
    for tier, there in (("other", ["team-a"]), ("front", ["default", "team-a"])):
        patch = {"metadata": {"labels": {"tier": tier}}}
        cluster.request("PATCH", f"{pods}/{name}", patch, content_type="application/merge-patch+json")
        page.until(lambda there=there: names(page, 0) == there)
    page.press("metadata.namespace=te")
    page.until(lambda: page.text("#completions").split()[0] == "metadata.namespace=team-a")
    page.press("ARROW_DOWN", "ENTER")
    page.until(lambda: names(page, 0) == ["team-a"])
    page.press("nothing")
    page.reads("Nothing matches the filter.", ".note")
    page.until(lambda: address(page).endswith("&fields=metadata.namespace%3Dteam-a&filter=nothing"))
    shared = address(page)
    # Back removes the last chip, and Forward adds it again.
    page.browser.back()
    page.until(lambda: address(page) == "#/list/-/pods?labels=tier%3Dfront")
    page.until(lambda: names(page, 0) == ["default", "team-a"])
    page.browser.forward()
    page.until(lambda: address(page) == shared and page.text(".chipbar").count("×") == 2)
    page.find("button[aria-label='Remove tier=front']").click()
    page.until(lambda: page.text(".chipbar").count("×") == 1)
    page.press("END", *["BACKSPACE"] * len("nothing"), "BACKSPACE")
    page.until(lambda: len(page.rows()) == 4)


def test_chip_errors(page: Page) -> None:
    """An invalid selector, and one that the server refuses, are explained at their chips."""
    page.open("#/list/-/pods?labels=app%3Dweb,-bad%3D1")
    page.reads("Invalid selector: -bad", ".chipbar")
    page.until(lambda: len(page.rows()) == 2)
    assert [one.text for one in page.all(".chip.bad")] == ["-bad=1\n×"]
    page.open("#/list/-/pods?labels=app%3Dweb&fields=spec.nothing%3D1")
    page.reads("field label not supported: spec.nothing", ".chipbar [role=alert]")
    assert [one.text for one in page.all(".chip.bad")] == ["spec.nothing=1\n×"]
    assert page.all(".note .problem") == []
    page.find("button[aria-label='Remove spec.nothing=1']").click()
    page.until(lambda: len(page.rows()) == 2)


def test_selectable_fields(page: Page, cluster: SubprocessServer) -> None:
    """Fields that a custom resource declares are completed."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "shirts", "kind": "Shirt"},
        "versions": [version],
    }
    make(
        cluster,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {"metadata": {"name": "shirts.example.com"}, "spec": spec},
    )
    shirts = "/apis/example.com/v1/namespaces/default/shirts"
    page.until(lambda: cluster.request("GET", shirts)[0] == 200)
    for name, color in (("one", "red"), ("two", "blue")):
        make(
            cluster,
            shirts,
            {"apiVersion": "example.com/v1", "kind": "Shirt", "metadata": {"name": name}, "spec": {"color": color}},
        )
    page.open("#/list/example.com/shirts")
    page.until(lambda: names(page) == ["one", "two"])
    page.press("/")
    page.until(
        lambda: page.run(
            "return performance.getEntriesByType('resource').some((one) => one.name.endsWith('/shirts.example.com'))"
        )
    )
    page.press("col")
    page.until(lambda: page.text("#completions").split() == ["spec.color=", "field"])
    page.press("ARROW_DOWN", "ENTER", "red", "ENTER")
    page.until(lambda: names(page) == ["one"])
    assert address(page) == "#/list/example.com/shirts?fields=spec.color%3Dred"


def test_listed_fields(page: Page, cluster: SubprocessServer) -> None:
    """The server selects by each field that is listed for a kind, and by no other one."""
    listed = """
        const [resources, done] = arguments;
        const app = document.querySelector("script[type=module]").src;
        import(new URL("lib/selectors.js", app).href)
            .then(({ fieldsOf }) => done(resources.map((one) => fieldsOf(one))));
    """
    found = []
    groups = cluster.request("GET", "/apis")[1]["groups"]
    versions = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    for root in versions:
        group = root.split("/")[2] if root.startswith("/apis") else ""
        for one in cluster.request("GET", root)[1]["resources"]:
            if "list" in one["verbs"] and group != "metrics.k8s.io" and one["name"] != "componentstatuses":
                resource = {"group": group, "resource": one["name"], "namespaced": one["namespaced"]}
                found.append((f"{root}/{one['name']}", resource))
    fields = page.browser.execute_async_script(listed, [resource for _, resource in found])
    rich = set()
    for (path, resource), names in zip(found, fields, strict=True):
        for field in names:
            code, answer = cluster.request("GET", f"{path}?limit=1&fieldSelector={field}%3Dtrue")
            assert code == 200, (path, field, answer)
        code, answer = cluster.request("GET", f"{path}?limit=1&fieldSelector=spec.unlisted%3Dtrue")
        assert code == 400, (path, answer)
        if len(names) > 2:
            rich.add(f"{resource['group']}/{resource['resource']}")
    assert {"/pods", "/events", "events.k8s.io/events", "/secrets", "/services", "batch/jobs"} <= rich


def test_shared_address(page: Page) -> None:
    """An address has all that a table shows, and selects its namespace without choosing it for the tab."""
    page.open("#/list/apps/deployments")
    page.until(lambda: len(page.rows()) == 4)
    page.find("#wide").click()
    page.run("[...document.querySelectorAll('th button')].find((one) => one.textContent === 'Name').click()")
    page.press("/", "web")
    page.until(lambda: address(page) == "#/list/apps/deployments?filter=web&sort=Name&wide=1")
    page.run(
        "const choice = document.querySelector('#namespace'); choice.value = 'team-a';"
        "choice.dispatchEvent(new Event('change'))"
    )
    page.until(
        lambda: (
            address(page) == "#/list/apps/deployments?namespace=team-a&filter=web&sort=Name&wide=1"
            or address(page).endswith("namespace=team-a")
        )
    )
    page.until(lambda: names(page, 0) == ["web"])
    shared = address(page)
    assert page.run("return sessionStorage.getItem('namespace')") == "team-a"
    page.browser.back()
    page.until(lambda: len(page.rows()) == 2 and page.run("return document.querySelector('#namespace').value") == "")
    # In another tab: nothing was chosen there.
    page.run("sessionStorage.clear()")
    page.browser.get("about:blank")
    page.browser.get(f"{page.url}/ui/{shared}")
    page.until(lambda: names(page, 0) == ["web"])
    assert page.run("return document.querySelector('#namespace').value") == "team-a"
    assert page.run("return sessionStorage.getItem('namespace')") is None
    assert page.find("#filter").get_attribute("value") == "web"
    assert page.run("return document.querySelector('#wide').checked")
    assert page.find("th[aria-sort=ascending]").text.startswith("Name")
    # Views without a namespace in the address remain where the address has led.
    page.open("#/list/-/pods")
    page.until(lambda: len(page.rows()) == 2)
    assert address(page) == "#/list/-/pods?namespace=team-a"


def test_columns(page: Page) -> None:
    """The user chooses the columns, and the address has them."""
    page.open("#/list/-/pods")
    page.until(lambda: len(page.rows()) == 4)

    def heads() -> Any:
        return page.text("thead").split("\n")[0].split()

    page.find("#columns").click()
    assert page.find("#column-0").get_attribute("checked")
    for column in page.all("dialog label"):
        if column.text in ("Ready", "Restarts", "Node"):
            column.click()
    page.press("ESCAPE")
    page.until(lambda: heads() == ["Namespace", "Name", "Status", "Age", "Node"])
    assert address(page) == "#/list/-/pods?columns=Name,Status,Age,Node"
    page.find("#columns").click()
    page.find("#default-columns").click()
    page.until(lambda: heads() == ["Namespace", "Name", "Ready", "Status", "Restarts", "Age"])


def test_saved_views(page: Page) -> None:
    """A view is saved with all that the table shows, listed, found, renamed and deleted."""
    page.open("#/list/-/pods?namespace=team-a&labels=app%3Dweb&sort=-Age&columns=Name,Age")
    page.until(lambda: len(page.rows()) == 1)
    page.find("#save-view").click()
    field = page.find("#view-name")
    assert field.get_attribute("value") == "pods app=web team-a"
    field.send_keys("Web pods of A\n")
    page.until(lambda: not page.all("dialog"))
    page.reads("Web pods of A", ".side")
    page.open("#/")
    page.load()
    page.find(".side .view a").click()
    page.until(lambda: len(page.rows()) == 1)
    assert address(page) == "#/list/-/pods?namespace=team-a&labels=app%3Dweb&sort=-Age&columns=Name,Age"
    page.open("#/list/-/secrets")
    page.press("k", held="CONTROL")
    page.find("dialog.find")
    page.press("of a")
    page.until(lambda: "Web pods of A" in options(page))
    page.press("ESCAPE")
    page.find("button[aria-label='Rename or delete Web pods of A']").click()
    field = page.find("#view-name")
    field.clear()
    field.send_keys("Renamed\n")
    page.until(lambda: [one.text for one in page.all(".side .view a")] == ["Renamed"])
    page.find("button[aria-label='Rename or delete Renamed']").click()
    page.find("#delete-view").click()
    page.until(lambda: page.all(".side .view") == [])


def test_keys(page: Page, cluster: SubprocessServer) -> None:
    """Keys move, open, show YAML, edit, delete and help; dialogs return the focus."""
    path = "/api/v1/namespaces/default/configmaps"
    for name in ("key-a", "key-b"):
        make(cluster, path, {"metadata": {"name": name}})
    page.open("#/list/-/configmaps?filter=key-")
    page.until(lambda: names(page) == ["key-a", "key-b"])
    page.until(lambda: focused(page) == "table.grid")
    page.press("?")
    page.reads("its YAML", "dialog")
    page.press("ESCAPE")
    page.until(lambda: focused(page) == "table.grid")
    page.press("j", "j", "y")
    page.until(lambda: address(page) == "#/object/-/configmaps/default/key-b/yaml")
    page.find(".yaml")
    page.press("ESCAPE")
    page.until(lambda: names(page) == ["key-a", "key-b"])
    page.until(lambda: "key-b" in page.text("#chosen-row"))
    page.press("k", "e")
    page.until(lambda: address(page) == "#/object/-/configmaps/default/key-a/edit")
    page.find("yaml-editor")
    page.until(lambda: page.run("return document.activeElement.tagName") == "YAML-EDITOR")
    page.press("y")  # text, not a key
    page.until(lambda: page.edited().startswith("y"))
    assert address(page).endswith("/edit")
    page.open("#/list/-/configmaps?filter=key-")
    page.find("#leave").click()
    page.until(lambda: "key-a" in page.text("#chosen-row"))
    page.press("d")
    page.find("#run:enabled").click()
    page.until(lambda: names(page) == ["key-b"])
    assert cluster.request("GET", f"{path}/key-a")[0] == 404
    assert address(page) == "#/list/-/configmaps?filter=key-"
    page.open("#/object/-/configmaps/default/key-b")
    page.until(lambda: page.run("return document.activeElement.textContent") == "key-b")
    page.press("d")
    page.find("#run")
    page.press("ESCAPE")
    page.until(lambda: not page.all("dialog"))
    page.press("e")
    page.until(lambda: address(page).endswith("/edit"))
    page.open("#/list/-/pods")
    page.until(lambda: len(page.rows()) == 4)
    page.until(lambda: focused(page) == "table.grid")
    page.press("j", "l")
    page.until(lambda: address(page).endswith("/logs"))


def test_skip_link(page: Page) -> None:
    """The first stop of the keyboard leads to the content."""
    page.open("#/plots")
    page.reads("Latency")
    page.run("document.activeElement.blur(); document.querySelector('.skip').focus()")
    page.until(lambda: page.run("return document.querySelector('.skip').getBoundingClientRect().top >= 0"))
    page.press("ENTER")
    page.until(lambda: focused(page) == "main")
    assert address(page) == "#/plots"


def test_theme(page: Page) -> None:
    """The theme is chosen in the dialog of the user, and remains after a reload."""
    colour = "return getComputedStyle(document.body).backgroundColor"
    page.find(".who").click()
    page.reads("system:masters", "dialog")
    page.find("#theme-dark").click()
    page.until(lambda: page.run(colour) == "rgb(21, 24, 29)")
    page.press("ESCAPE")
    page.until(lambda: focused(page) == "button.button who")
    page.load()
    page.find(".who")
    assert page.run(colour) == "rgb(21, 24, 29)"
    page.find(".who").click()
    page.find("#theme-light").click()
    page.until(lambda: page.run(colour) == "rgb(255, 255, 255)")
    page.find("#theme-system").click()


def test_narrow(page: Page) -> None:
    """At 360 pixels no view is wider than the window, and the list of kinds is a drawer."""
    size = {"width": NARROW, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        web = "#/object/apps/deployments/default/web"
        views = {
            "#/": ".card",
            "#/list/-/pods?labels=app%3Dweb": ".chip",
            f"{web}": ".details dl",
            f"{web}/yaml": ".yaml",
            f"{web}/edit": "yaml-editor",
            f"{web}/events": ".grid",
            f"{web}/graph": ".graph svg",
            "#/access": "table.plain",
            "#/why?verb=get&resource=pods&user=x": "#verdict",
            "#/plots": ".chart",
            "#/new/-/pods": "yaml-editor",
        }
        for view, sign in views.items():
            page.open(view)
            page.find(sign)
            page.until(lambda: page.run("return document.documentElement.scrollWidth") == NARROW)
            for element in page.run(
                "return [...document.querySelectorAll('header.top > *, .bar > *, .chipbar > *')]"
                ".filter((one) => one.checkVisibility())"
                ".map((one) => [one.className, one.getBoundingClientRect().right])"
            ):
                assert element[1] <= NARROW, (view, element)
        page.open("#/list/-/pods")
        page.find(".grid")
        for opener, dialog in (
            ("#find", ".find"),
            (".who", "#sign-out"),
            ("#columns", "#default-columns"),
            ("#save-view", "#keep-view"),
        ):
            page.find(opener).click()
            page.find(f"dialog {dialog}" if dialog.startswith("#") else f"dialog{dialog}")
            left, right = page.run(
                "const one = document.querySelector('dialog').getBoundingClientRect(); return [one.left, one.right]"
            )
            assert left >= 0 and right <= NARROW, opener
            page.press("ESCAPE")
            page.until(lambda: not page.all("dialog"))
        assert not page.find(".side").is_displayed()
        page.find(".drawer").click()
        page.until(lambda: page.find(".side").is_displayed())
        page.press("ESCAPE")
        page.until(lambda: not page.find(".side").is_displayed())
        assert focused(page) == "button.button drawer"
        page.press("g", "limitr", "ENTER")
        page.until(lambda: address(page) == "#/list/-/limitranges")
        page.until(lambda: not page.find(".side").is_displayed())
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
