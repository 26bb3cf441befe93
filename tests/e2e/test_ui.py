"""Tests for the page at /ui, in a real browser."""

from __future__ import annotations

import http.client
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, another_origin, make

MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"
#: What would run if anything of an object were taken for more than text.
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>javascript:window.hacked=1"


@pytest.fixture(scope="module")
def server(page_server: SubprocessServer) -> SubprocessServer:
    """The server of the page."""
    return page_server


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_sign_in_and_out(browser: Any, server: SubprocessServer) -> None:
    """
    An invalid token is rejected; a valid one begins a session that survives reloads, is hidden from scripts, and ends
    at sign-out.
    """
    page = Page(browser, server.url)
    browser.get(f"{server.url}/ui/")
    page.find("input[name=token]").send_keys("nobody's\n")
    page.reads("Invalid token.")
    page.sign_in(server.token)
    assert page.run("return document.cookie") == ""
    (cookie,) = browser.get_cookies()
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    assert server.token not in page.run("return JSON.stringify([localStorage, sessionStorage])")
    page.load()
    page.reads("kubetwist-test-admin", ".who")
    page.picture("overview")
    page.sign_out()
    page.find("input[name=token]")
    assert browser.get_cookies() == []


def test_page_size(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The page loads less than 75 kB until it can be used, and less than 150 kB with the start page and its data, from
    this server only; the load time is printed.
    """
    # The moment at which the kinds are there to be chosen.
    watching = """
        new MutationObserver((_, observer) => {
            if (!document.querySelector('.side a[href="#/list/-/configmaps"]')) return;
            window.usable = performance.now();
            observer.disconnect();
        }).observe(document, { childList: true, subtree: true });
    """
    script = page.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": watching})
    page.browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    page.load()
    milliseconds = page.until(lambda: page.run("return window.usable"))
    page.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    entries = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    page.until(lambda: page.text("#checked").startswith("checked"))
    loaded = page.run(f"return {entries}.map((one) => [one.name, one.transferSize, one.startTime])")
    assert len(loaded) > 8
    assert all(name.startswith(f"{page.url}/") for name, *_ in loaded), loaded
    size = sum(size for _, size, _ in loaded)
    # None came out of the cache.
    assert 20_000 < size < 150_000
    first = [size for name, size, start in loaded if "/ui/" in name and start < milliseconds]
    assert 20_000 < sum(first) < 75_000
    assert len(first) < 40
    assert len(loaded) < 90
    with capsys.disabled():
        print(f"\nthe page: {size / 1000:.0f} kB, usable after {milliseconds:.0f} ms")


def test_browse_and_watch(page: Page, server: SubprocessServer) -> None:
    """A table has the cells that kubectl prints, and follows creations, changes and deletions."""
    make(server, MAPS, config_map("one", a="1", b="2"))
    page.open("#/list/-/configmaps")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    _, table = server.request("GET", "/api/v1/configmaps", accept=accept)
    expected = [[row["object"]["metadata"]["namespace"], *map(str, row["cells"][:2])] for row in table["rows"]]
    page.until(lambda: [row[:3] for row in page.rows()] == sorted(expected))
    make(server, MAPS, config_map("two", a="1"))
    page.until(lambda: ["default", "two", "1"] in [row[:3] for row in page.rows()])
    patch = {"data": {"b": "2", "c": "3"}}
    server.request("PATCH", f"{MAPS}/two", patch, content_type="application/merge-patch+json")
    page.until(lambda: ["default", "two", "3"] in [row[:3] for row in page.rows()])
    server.request("DELETE", f"{MAPS}/two")
    page.until(lambda: "two" not in [row[1] for row in page.rows()])


def test_sort_and_keys(page: Page, server: SubprocessServer) -> None:
    """Rows are sorted by the values of their cells, and all actions work with the keyboard."""

    def names() -> list[str]:
        return [row[-1] for row in page.rows()]

    make(server, "/api/v1/namespaces", {"metadata": {"name": "sorted"}})
    now = datetime.now(UTC)
    for name, age in (("one", 3 * 86400 + 60), ("two", 45), ("three", 7 * 60 + 9), ("four", 11 * 3600)):
        about = {"kind": "ConfigMap", "namespace": "sorted", "name": name}
        seen = (now - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {"metadata": {"name": name}, "involvedObject": about, "message": name, "lastTimestamp": seen}
        make(server, "/api/v1/namespaces/sorted/events", event)
    page.run("sessionStorage.setItem('namespace', 'sorted')")
    page.load()
    page.open("#/list/-/events")
    page.until(lambda: names() == ["four", "one", "three", "two"])
    # The table has the focus; its first heading is what follows, and sorts by when it was, not by letters.
    page.until(lambda: page.run("return document.activeElement.className") == "grid")
    page.press("TAB", "ENTER")
    page.until(lambda: names() == ["two", "three", "four", "one"])
    assert page.find("th[aria-sort=ascending]").text.startswith("Last Seen")
    page.press("ENTER")
    page.until(lambda: names() == ["one", "four", "three", "two"])
    page.press("ENTER")
    page.until(lambda: names() == ["four", "one", "three", "two"])
    page.press("TAB", held="SHIFT")
    page.press("ARROW_DOWN", "ARROW_DOWN", "ARROW_DOWN")
    page.until(lambda: page.text("#chosen-row").endswith("three"))
    assert page.find(".grid").get_attribute("aria-activedescendant") == "chosen-row"
    page.press("ENTER")
    page.reads("three", ".details")
    page.press("ESCAPE")
    page.until(lambda: names() == ["four", "one", "three", "two"])
    page.press("/", "thr")
    page.until(lambda: names() == ["three"])
    # Who comes back from an object finds the table as it was.
    page.find(".grid tbody tr:not([aria-hidden])").click()
    page.reads("three", ".details")
    page.press("ESCAPE")
    page.until(lambda: page.text("#chosen-row").endswith("three"))
    assert names() == ["three"]
    assert page.run("return document.querySelector('#filter').value") == "thr"
    page.press("g")
    page.press("limitr", "TAB", "ENTER")
    page.reads("No limitranges here.")


def test_custom_kinds(page: Page, server: SubprocessServer) -> None:
    """A kind that is defined while the page is open is listed, with its columns."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.example"},
        "spec": {
            "group": "sea.example",
            "scope": "Cluster",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{**version, "additionalPrinterColumns": [column]}],
        },
    }
    make(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    path = "/apis/sea.example/v1/boats"
    page.until(lambda: server.request("GET", path)[0] == 200)
    boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "argo"}, "spec": {"size": 50}}
    make(server, path, boat)
    page.open("#/access")
    page.find(".side a[href='#/list/sea.example/boats']").click()
    page.until(lambda: [row[:2] for row in page.rows()] == [["argo", "50"]])


def test_yaml(page: Page, server: SubprocessServer) -> None:
    """An object is shown as the server's YAML with folded managed fields, and updated when it changes."""
    make(server, MAPS, config_map("shown", a="1"))
    page.open("#/object/-/configmaps/default/shown/yaml")
    page.reads("managedFields: …", ".yaml")
    assert "fieldsType" not in page.text(".yaml")
    page.find("button[aria-label='Unfold managedFields']").click()
    page.reads("fieldsType: FieldsV1", ".yaml")
    patch = {"data": {"a": "changed"}}
    server.request("PATCH", f"{MAPS}/shown", patch, content_type="application/merge-patch+json")
    page.reads("a: changed", ".yaml")
    # What one has unfolded or folded stays so.
    page.reads("fieldsType: FieldsV1", ".yaml")
    page.find("button[aria-label='Fold data']").click()
    patch = {"metadata": {"annotations": {"b": "another"}}}
    server.request("PATCH", f"{MAPS}/shown", patch, content_type="application/merge-patch+json")
    page.reads("b: another", ".yaml")
    assert "a: changed" not in page.text(".yaml")
    assert page.run("return document.activeElement.ariaLabel") == "Unfold data"


def test_edit(page: Page, server: SubprocessServer) -> None:
    """Changes are shown before they are saved; afterwards the page owns only the changed fields."""
    make(server, MAPS, config_map("edited", a="1", b="2"))
    page.open("#/object/-/configmaps/default/edited/edit")
    page.write("data:\n", "data:\n  c: new\n")
    page.press("ENTER", held="CONTROL")
    page.reads("+   c: new", ".diff")
    page.picture("edit")
    assert server.request("GET", f"{MAPS}/edited")[1]["data"] == {"a": "1", "b": "2"}
    page.find("#save").click()
    page.reads("c: new", ".yaml")
    _, saved = server.request("GET", f"{MAPS}/edited")
    assert saved["data"] == {"a": "1", "b": "2", "c": "new"}
    (own,) = [one for one in saved["metadata"]["managedFields"] if one["manager"] == "kubetwist-ui"]
    assert (own["operation"], own["fieldsV1"]) == ("Apply", {"f:data": {"f:c": {}}})
    # A second edit keeps what the first one has set, and can take it away again.
    page.open("#/object/-/configmaps/default/edited/edit")
    page.write("  c: new\n", "")
    page.find("#review").click()
    page.reads("-   c: new", ".diff")
    page.find("#save").click()
    page.until(lambda: server.request("GET", f"{MAPS}/edited")[1]["data"] == {"a": "1", "b": "2"})


def test_edit_with_conflict(page: Page, server: SubprocessServer) -> None:
    """A conflict shows fields and managers, and fields are taken over only on request."""
    path = f"{MAPS}/shared?fieldManager=the-other"
    assert server.request("PATCH", path, config_map("shared", a="theirs"), content_type=APPLY)[0] == 201
    page.open("#/object/-/configmaps/default/shared/edit")
    page.write("a: theirs", "a: mine")
    page.find("#review").click()
    page.reads(".data.a", "#conflicts")
    page.reads("the-other", "#conflicts")
    page.picture("conflict")
    assert server.request("GET", f"{MAPS}/shared")[1]["data"] == {"a": "theirs"}
    page.find("#force").click()
    page.reads("+   a: mine", ".diff")
    assert server.request("GET", f"{MAPS}/shared")[1]["data"] == {"a": "theirs"}
    page.find("#save").click()
    page.reads("a: mine", ".yaml")
    assert server.request("GET", f"{MAPS}/shared")[1]["data"] == {"a": "mine"}


def test_replace(page: Page, server: SubprocessServer) -> None:
    """A whole object can be replaced unless another client has changed it since."""
    make(server, MAPS, config_map("replaced", a="1", b="2"))
    page.open("#/object/-/configmaps/default/replaced/edit")
    page.write("  a: ", "  z: ")
    page.run(
        "const how = document.querySelector('#how'); how.value = 'replace'; how.dispatchEvent(new Event('change'))"
    )
    page.find("#review").click()
    page.reads("+   z:", ".diff")
    patch = {"data": {"b": "3"}}
    server.request("PATCH", f"{MAPS}/replaced", patch, content_type="application/merge-patch+json")
    page.find("#save").click()
    page.reads("the object has been modified", ".problem")


def test_create_and_delete(page: Page, server: SubprocessServer) -> None:
    """An object is created after a dry run, and deleted after a confirmation."""
    page.open("#/new/-/configmaps")
    page.write("name: ", "name: Wrong")
    page.find("#review").click()
    page.reads("Invalid value", ".problem")
    page.write("name: Wrong", "name: made-here")
    page.find("#review").click()
    page.reads("This would be created")
    assert server.request("GET", f"{MAPS}/made-here")[0] == 404
    page.find("#save").click()
    page.reads("name: made-here", ".yaml")
    assert server.request("GET", f"{MAPS}/made-here")[0] == 200
    page.find("#delete").click()
    page.find("#run:enabled")
    # It is this object that one has seen: one of the same name is another.
    server.request("DELETE", f"{MAPS}/made-here")
    make(server, MAPS, config_map("made-here"))
    page.find("#run:enabled").click()
    page.reads("might have been deleted and then recreated", "dialog")
    page.find("dialog button").click()
    page.open("#/list/-/configmaps")
    page.open("#/object/-/configmaps/default/made-here")
    page.find("#delete").click()
    page.find("#run:enabled").click()
    page.until(lambda: server.request("GET", f"{MAPS}/made-here")[0] == 404)
    page.find(".grid")


def owned(kind: str, version: str, name: str, *owners: Any) -> dict[str, Any]:
    """Return an object with its owner."""
    references = [
        {
            "apiVersion": one["apiVersion"],
            "kind": one["kind"],
            "name": one["metadata"]["name"],
            "uid": one["metadata"]["uid"],
        }
        for one in owners
    ]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "ownerReferences": references}}


def test_graph(page: Page, server: SubprocessServer) -> None:
    """Owners and dependents are drawn over several levels, with links to each other."""
    labels = {"app": "web"}
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    apps = "/apis/apps/v1/namespaces/default"
    deployment = make(server, f"{apps}/deployments", {**owned("Deployment", "apps/v1", "web"), "spec": spec})
    deployment |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    for number in (1, 2):
        head = owned("ReplicaSet", "apps/v1", f"web-{number}", deployment)
        replicas = make(server, f"{apps}/replicasets", {**head, "spec": {"replicas": 3, **spec}})
        replicas |= {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
        make(server, MAPS, {**owned("ConfigMap", "v1", f"settings-{number}", replicas), "data": {}})
    page.open("#/object/apps/deployments/default/web/graph")
    page.until(lambda: len(page.all(".graph rect")) == 5)
    assert len(page.all(".graph path")) == 4
    page.picture("graph")
    page.open("#/object/-/configmaps/default/settings-1/graph")
    page.until(lambda: len(page.all(".graph rect")) == 3)
    assert page.find(".graph .here title").get_attribute("textContent") == "ConfigMap settings-1"


def test_access_and_why(page: Page, server: SubprocessServer) -> None:
    """A forbidden request is reported, users can list their permissions, and permitted users get an explanation."""
    make(server, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "guest"}})
    path = "/api/v1/namespaces/default/serviceaccounts/guest/token"
    token = make(server, path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    page.sign_in(token["status"]["token"])
    page.open("#/list/-/secrets")
    page.reads("cannot list resource", ".problem")
    page.open("#/access")
    page.reads("selfsubjectrulesreviews", ".plain")
    # Who may not list namespaces can still name one.
    choose = "const choice = document.querySelector('#namespace'); choice.value = arguments[0];"
    page.run(f"{choose} choice.dispatchEvent(new Event('change'))", "…")
    page.find("#namespace-name").send_keys("kube-public\n")
    page.reads("in namespace kube-public", "main")
    assert page.run("return document.querySelector('#namespace').value") == "kube-public"
    page.sign_in(server.token)
    page.open("#/why?user=system:serviceaccount:default:guest&verb=list&resource=secrets&namespace=default")
    page.reads("may not", "#verdict")


def fill(server: SubprocessServer, namespace: str, count: int) -> None:
    """Create many small objects over a few persistent connections."""
    parts = urlsplit(server.url)
    context = server.connection.ssl_context()
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    failed: list[int] = []

    def work(first: int) -> None:
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=30)
        for number in range(first, count, 4):
            body = json.dumps(config_map(f"m-{number:05}"))
            connection.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body, headers)
            response = connection.getresponse()
            response.read()
            if response.status != 201:
                failed.append(response.status)
        connection.close()

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[:5]


#: Scrolls through a table, one step per frame. Returns the number of frames, the number of tasks of more than 50 ms,
#: the maximum number of elements, and the longest frame.
SCROLL_THROUGH = """
    const [steps, done] = arguments;
    const view = document.querySelector('.scroller');
    const tasks = [], gaps = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries())).observe({ type: 'longtask' });
    let step = 0, most = 0, before = performance.now();
    const frame = (now) => {
        gaps.push(now - before);
        before = now;
        most = Math.max(most, view.querySelectorAll('tbody tr').length);
        view.scrollTop = (view.scrollHeight - view.clientHeight) * (step / steps);
        if (step++ < steps) requestAnimationFrame(frame);
        else setTimeout(() => done([gaps.length, tasks.length, most, Math.max(...gaps)]), 100);
    };
    requestAnimationFrame(frame);
"""


def test_ten_thousand(page: Page, server: SubprocessServer, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Of 10,000 rows only the visible ones are elements at any scroll position, also while rows are added and changed.
    """
    make(server, "/api/v1/namespaces", {"metadata": {"name": "many"}})
    fill(server, "many", 10_000)
    page.run("sessionStorage.setItem('namespace', 'many')")
    page.load()
    page.open("#/list/-/configmaps")
    page.until(lambda: page.text(".count") in ("10000", "10001"))
    assert 0 < len(page.rows()) < 120
    scroll = "const view = document.querySelector('.scroller'); view.scrollTop = view.scrollHeight * arguments[0]"
    for part, name in ((0.5, "m-05"), (1, "m-09999"), (0, "m-00000")):
        page.run(scroll, part)
        page.until(lambda name=name: any(row[0].startswith(name) for row in page.rows()))
        assert len(page.rows()) < 120
    path = "/api/v1/namespaces/many/configmaps"

    def change() -> None:
        for number in range(80):
            make(server, path, config_map(f"a-{number:03}")) if number % 2 == 0 else server.request(
                "DELETE", f"{path}/a-{number - 1:03}"
            )

    def scroll_through() -> tuple[int, int, int, float]:
        changing = threading.Thread(target=change)
        changing.start()
        found = page.browser.execute_async_script(SCROLL_THROUGH, 80)
        changing.join()
        return tuple(found)

    figures = []
    for sorted_by in ("", "Name", "Age"):
        if sorted_by:
            page.find(f"th:nth-child({2 if sorted_by == 'Name' else 4}) button").click()
        # On a machine that is busy with something else, once more; a table that goes through all its rows for each
        # frame has nearly as many long tasks as there are frames, however often one looks.
        for _ in range(3):
            frames, tasks, most, longest = scroll_through()
            assert most < 120
            if tasks < frames / 2:
                break
        figures.append(f"{tasks} of {frames} frames over 50 ms, the longest {longest:.0f} ms")
        assert tasks < frames / 2, figures
    with capsys.disabled():
        print(f"\n10,000 rows that change: {'; by name and age: '.join(figures[:2])}; {figures[2]}")
    # In one step: the table may replace its header between finding a button and clicking it.
    page.run("document.querySelector('th:nth-child(4) button').click()")
    page.run("document.querySelector('th:nth-child(4) button').click()")
    page.run(scroll, 0)
    make(server, path, config_map("a-last"))
    page.until(lambda: page.rows()[0][0] == "a-last")
    page.picture("many")
    # Who comes back from an object deep down finds its row again.
    page.run(scroll, 0.5)
    page.until(lambda: page.rows()[15][0].startswith("m-05"))
    page.run("document.querySelectorAll('.grid tbody tr:not([aria-hidden])')[15].click()")
    page.reads("Created", ".details")
    name = page.find("h1").text
    page.press("ESCAPE")
    page.until(lambda: page.text("#chosen-row").strip().startswith(name))
    assert page.run(
        "const box = arguments[0].getBoundingClientRect(); return box.top > 100 && box.bottom < innerHeight",
        page.find("#chosen-row"),
    )
    page.find("#filter").send_keys("m-0777")
    page.until(lambda: len(page.rows()) == 10)


def test_hostile_objects(page: Page, server: SubprocessServer) -> None:
    """Names, annotations, contents and events are shown as text, and never executed."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    name = "<img src=x onerror=window.hacked=1>"
    make(server, roles, {"metadata": {"name": name, "annotations": {"note": HOSTILE}}, "rules": []})
    annotated = config_map("hostile", **{"page.html": HOSTILE})
    annotated["metadata"]["annotations"] = {"a": HOSTILE, "b": "javascript:window.hacked=1"}
    created = make(server, MAPS, annotated)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "hostile.1"},
        "involvedObject": {
            "kind": "ConfigMap",
            "name": "hostile",
            "namespace": "default",
            "uid": created["metadata"]["uid"],
        },
        "reason": HOSTILE[:100],
        "message": HOSTILE,
        "type": "Warning",
    }
    make(server, "/api/v1/namespaces/default/events", event)
    role = f"#/object/rbac.authorization.k8s.io/clusterroles/-/{quote(name, safe='')}"
    places = [
        ("#/list/rbac.authorization.k8s.io/clusterroles", "onerror=window.hacked=1", ".grid"),
        (role, "<script>", ".details"),
        (f"{role}/yaml", "<script>", ".yaml"),
        (f"{role}/graph", "onerror", ".graph"),
        ("#/object/-/configmaps/default/hostile", "<script>", "#data"),
        ("#/object/-/configmaps/default/hostile/yaml", "<script>", ".yaml"),
        ("#/object/-/configmaps/default/hostile/events", "onerror", ".grid"),
        ("#/list/-/events", "onerror", ".grid"),
        (f"#/why?verb=get&resource=pods&name={quote(HOSTILE, safe='')}", "hacked", "#verdict"),
    ]
    for address, text, where in places:
        page.open(address)
        page.until(lambda text=text, where=where: text in page.content(where))
        assert page.run("return window.hacked") is None, address
        assert page.all("main img, main script, main iframe, a[href^='javascript' i]") == [], address
    page.open(f"{role}/edit")
    page.write("note: ", "other: changed\n    note: ")
    page.find("#review").click()
    page.reads("+     other: changed", ".diff")
    assert page.run("return window.hacked") is None


def test_policy_holds(page: Page) -> None:
    """The browser blocks scripts and HTML that are injected into the page."""
    for attempt in (
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hacked=1>')",
        "const made = document.createElement('script'); made.textContent = 'hacked=1'; document.body.append(made)",
        "setTimeout('window.hacked=1')",
    ):
        refused = page.run(f"try {{ {attempt}; return false }} catch {{ return true }}")
        assert refused, attempt
    assert page.run("return window.hacked") is None


def test_other_origins(page: Page, server: SubprocessServer) -> None:
    """A page of another origin can neither read nor change anything with the session of its visitor."""
    key = page.run("return localStorage.getItem('kubetwist-key')")
    body = json.dumps(config_map("forged"))
    with_key = {"X-Kubetwist-UI": key, "Content-Type": "application/json"}
    plain = {"Content-Type": "text/plain"}
    with another_origin() as other:
        page.browser.get(other)
        for options in (
            {"credentials": "include"},
            {"credentials": "include", "headers": with_key},
            {"credentials": "include", "mode": "no-cors"},
            {"credentials": "include", "mode": "no-cors", "method": "POST", "body": body, "headers": plain},
            {"credentials": "include", "method": "POST", "body": body, "headers": with_key},
            {"credentials": "include", "method": "DELETE", "headers": with_key},
        ):
            answer = page.fetch(f"{server.url}{MAPS}", options)
            assert answer in (None, ["opaque", 0, ""]), (options, answer)
        assert server.request("GET", f"{MAPS}/forged")[0] == 404
    page.browser.get(f"{server.url}/ui/")
    page.reads("kubetwist-test-admin", ".who")
