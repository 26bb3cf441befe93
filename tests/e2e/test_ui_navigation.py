"""Tests for signing in to the page at /ui by a link, and for navigation in it, in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def server(page_server: SubprocessServer) -> SubprocessServer:
    """Return the server of the page."""
    return page_server


def test_sign_in_link(browser: Any) -> None:
    """The link in the log signs in as the admin, once, and leaves no trace in the address."""
    with SubprocessServer() as server:
        (link,) = re.findall(r"https://\S+/ui/#sign-in=\S+", server.output())
        page = Page(browser, server.url)
        browser.get(link)
        page.reads("kubernetes-admin", ".who")
        assert page.run("return location.hash") == "#/"
        page.open("#/list/-/namespaces")
        page.until(lambda: "kube-system" in [row[0] for row in page.rows()])
        page.sign_out()
        page.find("input[name=token]")
        browser.get("about:blank")
        browser.get(link)
        page.reads("This link was used before")


def test_root(browser: Any, server: SubprocessServer) -> None:
    """The server's address opens the page."""
    browser.get(f"{server.url}/")
    Page(browser, server.url).until(lambda: browser.current_url.startswith(f"{server.url}/ui/"))


def test_leaving_an_edit(page: Page, server: SubprocessServer) -> None:
    """Leaving an edit with changes asks; staying keeps the text, and discarding leaves."""
    make(server, MAPS, {"metadata": {"name": "left-edit"}, "data": {"a": "1"}})
    address = "#/object/-/configmaps/default/left-edit/edit"
    page.open(address)
    page.find("yaml-editor")
    page.open("#/list/-/configmaps")
    page.until(lambda: page.all(".grid"))
    page.open(address)
    page.find("yaml-editor")
    page.press("# changed\n")
    page.open("#/list/-/configmaps")
    page.reads("Your changes are not saved.", "dialog")
    page.press("ESCAPE")
    page.until(lambda: not page.all("dialog"))
    assert page.run("return location.hash") == address
    assert "# changed" in page.edited()
    page.open("#/list/-/configmaps")
    page.find("#leave").click()
    page.until(lambda: page.all(".grid"))
    assert page.run("return location.hash") == "#/list/-/configmaps"


def test_dialog_closes(page: Page, server: SubprocessServer) -> None:
    """A dialog about an object closes when another view is opened."""
    make(server, MAPS, {"metadata": {"name": "left-dialog"}})
    page.open("#/object/-/configmaps/default/left-dialog")
    page.find("#delete").click()
    page.find("dialog[open]")
    page.open("#/list/-/secrets")
    page.until(lambda: not page.all("dialog"))
    assert server.request("GET", f"{MAPS}/left-dialog")[0] == 200


def test_keys(page: Page, server: SubprocessServer) -> None:
    """In the search fields arrows choose and Enter opens, and a search ends when a view is opened."""
    for name in ("key-one", "key-two"):
        make(server, MAPS, {"metadata": {"name": name}})
    page.open("#/")
    page.press("g", "configm", "ARROW_DOWN", "ENTER")
    page.until(lambda: page.run("return location.hash") == "#/list/-/configmaps")
    page.until(lambda: page.run("return document.querySelector('.side input').value") == "")
    page.until(lambda: page.run("return document.activeElement.className") == "grid")
    page.press("/", "key-")
    page.until(lambda: [row[1] for row in page.rows()] == ["key-one", "key-two"])
    page.press("ARROW_DOWN", "ARROW_DOWN")
    page.until(lambda: "key-two" in page.text("#chosen-row"))
    page.press("/", "ENTER")
    page.until(lambda: page.run("return location.hash") == "#/object/-/configmaps/default/key-two")
    # Back from the object the filter is kept; from another list it is not.
    page.open("#/list/-/configmaps")
    page.until(lambda: page.run("return document.querySelector('#filter')?.value") == "key-")
    page.open("#/list/-/secrets")
    page.open("#/list/-/configmaps")
    page.until(lambda: page.run("return document.querySelector('#filter')?.value") == "")
    page.press("g", "limitr", "ENTER")
    page.until(lambda: page.run("return location.hash") == "#/list/-/limitranges")


def test_namespaced_user(browser: Any, server: SubprocessServer) -> None:
    """A user who may read one namespace starts there."""
    make(server, "/api/v1/namespaces", {"metadata": {"name": "navigators"}})
    server.request("POST", "/api/v1/namespaces/navigators/serviceaccounts", {"metadata": {"name": "reader"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/navigators"
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "navigators"}],
    }
    make(server, f"{rbac}/rolebindings", binding)
    path = "/api/v1/namespaces/navigators/serviceaccounts/reader/token"
    token = make(server, path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    page = Page(browser, server.url)
    page.sign_in(token["status"]["token"])
    page.until(lambda: page.run("return document.querySelector('#namespace').value") == "navigators")
