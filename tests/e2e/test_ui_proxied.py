"""Tests for pages of pods and services that are opened from the page, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import ChildKubeAPI

from .browser import Page, make, signed_in

CORE = "/api/v1/namespaces/default"
#: An application that attempts what only the page of the UI may do.
APPLICATION = """<!doctype html><title>application</title><pre id="result"></pre><script>
const attempt = async (run) => { try { return String(await run()); } catch { return "refused"; } };
const ask = (path, options) => attempt(async () => (await fetch(path, options)).status);
(async () => {
  const result = {
    storage: await attempt(() => localStorage.getItem("kubetwist-key")),
    cookie: await attempt(() => document.cookie),
    read: await ask("/api/v1/namespaces/default/secrets", { credentials: "include" }),
    write: await ask("/api/v1/namespaces/default/configmaps", {
      method: "POST", credentials: "include", mode: "no-cors", body: '{"metadata":{"name":"by-application"}}',
    }),
    key: await ask("/api/v1/namespaces/default/secrets", { headers: { "X-Kubetwist-UI": "x" } }),
    ui: await attempt(() => { const opened = open("/ui/"); return opened.document.title; }),
    relative: await ask("data?x=1"),
    posted: await ask("data", { method: "POST", body: "x", headers: { "X-Own": "1" } }),
  };
  document.getElementById("result").textContent = JSON.stringify(result);
})();
</script>"""
HEADERS = {"Content-Type": "text/html", "Set-Cookie": "application=1; Path=/", "Clear-Site-Data": '"*"'}
IMAGES: dict[str, Any] = {"web": {"ports": {80: {"http": {"body": APPLICATION, "headers": HEADERS}}}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildKubeAPI]:
    """A server with a simulated node, and a service in front of a pod."""
    path = tmp_path_factory.mktemp("images") / "images.yaml"
    path.write_text(json.dumps({"images": IMAGES}))
    with ChildKubeAPI("--in-memory", "--fake-nodes=1", f"--fake-images={path}") as server:
        containers = [{"name": "c", "image": "web", "ports": [{"containerPort": 80, "name": "http"}]}]
        metadata = {"name": "web", "labels": {"app": "web"}}
        make(server, f"{CORE}/pods", {"metadata": metadata, "spec": {"containers": containers}})
        ports = [{"name": "http", "port": 8080, "targetPort": 80}, {"name": "db", "port": 5432}]
        spec = {"selector": {"app": "web"}, "ports": ports}
        make(server, f"{CORE}/services", {"metadata": {"name": "web"}, "spec": spec})
        server.wait_for("pods/web", condition="Ready")
        server.wait_for("endpointslices", where=_has_endpoints, label_selector="kubernetes.io/service-name=web")
        yield server


def _has_endpoints(found: Any) -> bool:
    return bool(found.get("endpoints"))


@pytest.fixture
def page(browser: Any, server: ChildKubeAPI) -> Iterator[Page]:
    """The page, signed in as an administrator; further windows are closed."""
    page = signed_in(browser, server)
    first = browser.current_window_handle
    yield page
    for handle in browser.window_handles:
        if handle != first:
            browser.switch_to.window(handle)
            browser.close()
    browser.switch_to.window(first)


def open_port(page: Page) -> None:
    """Open the port of the shown object, and switch to its window."""
    before = set(page.browser.window_handles)
    page.until(lambda: [one for one in page.all(".open-port") if one.is_displayed()])[0].click()
    (opened,) = page.until(lambda: set(page.browser.window_handles) - before)
    page.browser.switch_to.window(opened)


@pytest.mark.parametrize(("resource", "name"), [("services", "web:8080"), ("pods", "web:80")])
def test_isolated(page: Page, server: ChildKubeAPI, resource: str, name: str) -> None:
    """An application is shown and reaches itself, but neither the session nor the API."""
    page.open(f"#/object/-/{resource}/default/web")
    page.reads("kubectl port-forward -n default", "#web")
    assert len(page.all("#web tbody tr")) == 1
    handle = page.browser.current_window_handle
    open_port(page)
    result = json.loads(page.until(lambda: page.text("#result")))
    # Opaque responses have the status 0.
    assert result == {
        "storage": "refused",
        "cookie": "refused",
        "read": "refused",
        "write": "0",
        "key": "refused",
        "ui": "refused",
        "relative": "200",
        "posted": "200",
    }
    assert "/ui/proxy/" in page.browser.current_url
    assert server.request("GET", f"{CORE}/configmaps/by-application")[0] == 404
    page.browser.switch_to.window(handle)
    assert "application" not in [one["name"] for one in page.browser.get_cookies()]
    page.load()
    page.until(lambda: page.text(".who") == "kubetwist-test-admin")


def test_end_of_session(page: Page, server: ChildKubeAPI) -> None:
    """After the user has signed out, the address does not work any more."""
    page.open("#/object/-/services/default/web")
    handle = page.browser.current_window_handle
    open_port(page)
    page.until(lambda: page.text("#result"))
    opened = page.browser.current_window_handle
    page.browser.switch_to.window(handle)
    page.sign_out()
    page.find("input[name=token]")
    page.browser.switch_to.window(opened)
    page.browser.refresh()
    page.reads("This address has expired.")


def test_permissions(page: Page, server: ChildKubeAPI) -> None:
    """Without the permission for the proxy there is only the command."""
    make(server, f"{CORE}/serviceaccounts", {"metadata": {"name": "looker"}})
    rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"]}]
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    make(server, f"{roles}/roles", {"metadata": {"name": "looker"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "looker", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looker"}
    make(server, f"{roles}/rolebindings", {"metadata": {"name": "looker"}, "subjects": [subject], "roleRef": role})
    _, token = server.request("POST", f"{CORE}/serviceaccounts/looker/token", {"spec": {}})
    page.sign_in(token["status"]["token"])
    page.open("#/object/-/services/default/web")
    page.reads("kubectl port-forward", "#web")
    script = """
        const done = arguments[0], key = localStorage.getItem("kubetwist-key");
        const body = JSON.stringify({ path: "/api/v1/namespaces/default/services/web:8080/proxy/" });
        fetch("/ui/proxy", { method: "POST", headers: { "X-Kubetwist-UI": key }, body })
            .then((response) => response.json()).then(({ path }) => done(path));
    """
    path = page.browser.execute_async_script(script)
    page.browser.get(f"{server.url}{path}")
    page.reads("services/proxy")
    page.load()
    page.open("#/object/-/services/default/web")
    page.reads("kubectl port-forward", "#web")
    assert not [one for one in page.all(".open-port") if one.is_displayed()]
