"""Tests for signing in to the page, for the end of sessions, and for users with few permissions, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/team/configmaps"


@pytest.fixture(scope="module")
def confined() -> Iterator[SubprocessServer]:
    """A server whose users may use few things: Bob namespace "team", Carol one object of it."""
    with SubprocessServer("--in-memory") as server:
        make(server, "/api/v1/namespaces", {"metadata": {"name": "team"}})
        make(server, MAPS, {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        bind(server, "bob", {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["get", "list", "watch"]})
        one = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["settings"]}
        bind(server, "carol", one)
        yield server
        assert "Traceback" not in server.output(), server.output()


def bind(server: SubprocessServer, user: str, rule: dict[str, Any]) -> None:
    """Allow a user what a rule says, in namespace "team"."""
    make(server, f"{RBAC}/namespaces/team/roles", {"metadata": {"name": user}, "rules": [rule]})
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    role = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    binding = {"metadata": {"name": user}, "subjects": [subject], "roleRef": role}
    make(server, f"{RBAC}/namespaces/team/rolebindings", binding)


def user_token(server: SubprocessServer, user: str) -> str:
    """Return a token of a user."""
    return str(server.connection.as_user(user, uid=user).token)


def fresh(browser: Any, server: SubprocessServer) -> Page:
    """Return the page without anything that an earlier test has stored."""
    page = Page(browser, server.url)
    browser.get(f"{page.url}/ui/")
    page.run("localStorage.clear(); sessionStorage.clear()")
    browser.delete_all_cookies()
    page.load()
    return page


def enter(page: Page, token: str) -> None:
    """Sign in with a token."""
    page.find("input[name=token]").send_keys(f"{token}\n")
    page.find("header.top")


def choose_namespace(page: Page, name: str) -> None:
    """Choose a namespace by its name."""
    page.find("#choose-namespace").click()
    page.find("#namespace-name").send_keys(f"{name}\n")


def cards(page: Page) -> list[str]:
    """Return the kinds that the overview counts."""
    script = "return [...document.querySelectorAll('.card')].map((one) => one.querySelector('small').textContent)"
    found: list[str] = page.run(script)
    return found


def test_one_namespace(browser: Any, confined: SubprocessServer) -> None:
    """
    A user of one namespace who may not list namespaces chooses it once; later the page begins there, and its overview
    has only what the user may list.
    """
    page = fresh(browser, confined)
    enter(page, user_token(confined, "bob"))
    page.reads("You may not list these kinds in all namespaces.")
    assert cards(page) == []
    choose_namespace(page, "team")
    page.until(lambda: cards(page) == ["pods", "configmaps"])
    page.reads("Namespace team", "h1")
    page.open("#/list/-/configmaps")
    page.until(lambda: "settings" in [row[0] for row in page.rows()])
    page.find("header.top button").click()
    page.find("input[name=token]")
    page.run("sessionStorage.clear()")
    page.load()
    enter(page, user_token(confined, "bob"))
    page.until(lambda: cards(page) == ["pods", "configmaps"])
    names = "return [...document.querySelectorAll('#namespace option')].map((one) => one.value)"
    assert "team" in page.run(names)


def test_only_get(browser: Any, confined: SubprocessServer) -> None:
    """A user who may list nothing is told so, and can open an object by its address."""
    page = fresh(browser, confined)
    enter(page, user_token(confined, "carol"))
    choose_namespace(page, "team")
    page.reads("You may not list these kinds in namespace team.")
    page.open("#/object/-/configmaps/team/settings/yaml")
    page.reads("name: settings", ".yaml")


def account_token(server: SubprocessServer, name: str) -> str:
    """Return a token of a new service account that is an administrator."""
    make(server, "/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "namespace": "team", "name": name}
    role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
    make(server, f"{RBAC}/clusterrolebindings", binding)
    return renewed_token(server, name)


def renewed_token(server: SubprocessServer, name: str) -> str:
    """Return another token of a service account."""
    request: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = make(server, f"/api/v1/namespaces/team/serviceaccounts/{name}/token", request)
    return str(made["status"]["token"])


def test_session_ends(browser: Any, confined: SubprocessServer) -> None:
    """
    When the session ends, unsaved changes remain; the user signs in again in a dialog, or in another tab, and saves
    them.
    """
    page = fresh(browser, confined)
    enter(page, account_token(confined, "editor"))
    make(confined, MAPS, {"metadata": {"name": "edited"}, "data": {"a": "1"}})
    page.open("#/object/-/configmaps/team/edited/edit")
    page.write('a: "1"', 'a: "1"\n  b: mine')
    # The token becomes invalid with its account.
    confined.request("DELETE", "/api/v1/namespaces/team/serviceaccounts/editor")
    page.reads("You have been signed out.", "dialog")
    page.find("dialog input[name=token]").send_keys("nonsense\n")
    page.reads("Invalid token.", "dialog")
    make(confined, "/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": "editor"}})
    page.find("dialog input[name=token]").send_keys(f"{renewed_token(confined, 'editor')}\n")
    page.until(lambda: not page.all("dialog"))
    assert not page.all(".session-notice")
    page.find("#review").click()
    page.find("#save").click()
    page.reads("b: mine", ".yaml")
    assert confined.request("GET", f"{MAPS}/edited")[1]["data"] == {"a": "1", "b": "mine"}

    # Again, but the sign-in happens in another tab, as another user.
    page.open("#/object/-/configmaps/team/edited/edit")
    page.write("b: mine", "b: mine, too")
    confined.request("DELETE", "/api/v1/namespaces/team/serviceaccounts/editor")
    page.reads("You have been signed out.", "dialog")
    page.all("dialog button")[-1].click()
    page.until(lambda: not page.all("dialog"))
    page.reads("You have been signed out.", ".session-notice")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{page.url}/ui/")
    enter(page, account_token(confined, "other-editor"))
    browser.close()
    browser.switch_to.window(first)
    page.reads("You are now signed in as system:serviceaccount:team:other-editor.", "dialog")
    page.reads("system:serviceaccount:team:other-editor", ".who")
    page.find("dialog button").click()
    page.find("#review").click()
    page.find("#save").click()
    page.until(lambda: confined.request("GET", f"{MAPS}/edited")[1]["data"]["b"] == "mine, too")

    # Without unsaved changes, the page for signing in is shown, and the view after it.
    page.reads("mine, too", ".yaml")
    confined.request("DELETE", "/api/v1/namespaces/team/serviceaccounts/other-editor")
    page.find("main.signin input[name=token]").send_keys(f"{confined.token}\n")
    page.reads("mine, too", ".yaml")
