"""Tests for signing in to the page, for the end of sessions, and for users with few permissions, in a real browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from tests.oidcprovider import CLIENT, Provider

from .browser import Page, make
from .oidcserver import serve_provider

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
    """Give a user the permissions of a rule, in namespace "team"."""
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
    page.sign_out()
    page.find("input[name=token]")
    page.run("sessionStorage.clear()")
    page.load()
    enter(page, user_token(confined, "bob"))
    page.until(lambda: cards(page) == ["pods", "configmaps"])
    names = "return [...document.querySelectorAll('#namespace option')].map((one) => one.value)"
    assert "team" in page.run(names)


def test_only_get(browser: Any, confined: SubprocessServer) -> None:
    """A user who may list nothing sees a message, and can open an object by its address."""
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

    # Without unsaved changes, the page for signing in is shown; after a sign-in, here in another tab, the view.
    page.reads("mine, too", ".yaml")
    confined.request("DELETE", "/api/v1/namespaces/team/serviceaccounts/other-editor")
    page.find("main.signin input[name=token]")
    browser.switch_to.new_window("tab")
    browser.get(f"{page.url}/ui/")
    enter(page, confined.token)
    browser.close()
    browser.switch_to.window(first)
    page.reads("mine, too", ".yaml")


@pytest.fixture(scope="module", params=[0, 2], ids=["one", "workers"])
def provided(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SubprocessServer, Provider]]:
    """A server of one or several processes, whose users sign in with a provider."""
    folder = tmp_path_factory.mktemp("provider")
    secret = folder / "secret"
    secret.write_text("the-secret-of-the-client\n")
    with serve_provider(folder) as (provider, certificate):
        provider.secret = "the-secret-of-the-client"
        flags = (
            f"--oidc-issuer-url={provider.url}",
            f"--oidc-client-id={CLIENT}",
            f"--oidc-ca-file={certificate}",
            f"--ui-oidc-client-id={CLIENT}",
            f"--ui-oidc-client-secret-file={secret}",
            "--ui-oidc-button=Use the <b>provider</b>",
            "--ui-oidc-scopes=email,offline_access",
            "--oidc-username-prefix=-",
            f"--workers={request.param}",
        )
        with SubprocessServer("--in-memory", *flags) as server:
            make(server, MAPS.replace("/team/", "/default/"), {"metadata": {"name": "settings"}, "data": {"a": "1"}})
            subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "dora"}
            role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"}
            binding = {"metadata": {"name": "dora"}, "subjects": [subject], "roleRef": role}
            make(server, f"{RBAC}/clusterrolebindings", binding)
            yield server, provider
            output = server.output()
            assert "Traceback" not in output, output
            assert "code=" not in output, output


def at_provider(page: Page, user: str) -> None:
    """Sign in at the provider."""
    page.reads("Provider", "h1")
    page.find("input[name=user]").send_keys(user)
    page.find("button").click()


def test_provider(browser: Any, provided: tuple[SubprocessServer, Provider]) -> None:
    """
    A user signs in with the provider and returns to the view; neither the address, nor the history, nor the storage of
    the browser has a code or a token; the session survives a reload, and its token is refreshed.
    """
    server, provider = provided
    provider.refreshes, provider.lifetime = True, 50
    provider.document = {"end_session_endpoint": f"{provider.url}/end"}
    page = fresh(browser, server)
    page.open("#/object/-/configmaps/default/settings/yaml")
    page.reads("Use the <b>provider</b>", "#oidc")
    page.find("#oidc").click()
    at_provider(page, "dora")
    page.reads("name: settings", ".yaml")
    page.reads("dora", ".who")
    assert page.run("return location.hash") == "#/object/-/configmaps/default/settings/yaml"
    names = {one["name"].rpartition("-")[0]: one["sameSite"] for one in browser.get_cookies()}
    assert names == {"__Host-kubetwist": "Strict"}
    stored = page.run("return JSON.stringify([localStorage, sessionStorage])")
    assert "eyJ" not in stored and "code" not in stored
    entries = browser.execute_cdp_cmd("Page.getNavigationHistory", {})["entries"]
    assert not any("code=" in one["url"] for one in entries), entries
    page.load()
    page.reads("dora", ".who")
    page.until(lambda: "refresh_token" in provider.grants)
    assert provider.grants[0] == "authorization_code"
    page.open("#/list/-/configmaps")
    page.until(lambda: "settings" in [row[1] for row in page.rows()])
    page.sign_out()
    page.find("#oidc-end").click()
    page.reads("Signed out of the provider")
    browser.get(f"{page.url}/ui/")
    page.find("#oidc")
    assert not page.all("#oidc-end")
    assert not [one for one in browser.get_cookies() if "kubetwist" in one["name"]]


def test_provider_refuses(browser: Any, provided: tuple[SubprocessServer, Provider]) -> None:
    """
    An error of the provider, too long a response, and one that this browser has not asked for are shown as text.
    """
    server, provider = provided
    page = fresh(browser, server)
    page.find("#oidc").click()
    page.reads("Provider", "h1")
    page.find("#deny").click()
    page.reads("the provider refused the sign-in: access_denied: <b>No.</b>", ".problem")
    provider.override = 200, b'{"id_token": "' + b"x" * 1_000_000 + b'"}'
    page.find("#oidc").click()
    at_provider(page, "dora")
    page.reads("the OpenID Connect provider does not answer", ".problem")
    provider.override = None
    browser.get("about:blank")
    browser.get(f"{page.url}/ui/oidc/callback?error=x&error_description=Call+us&code=stolen&state=guessed")
    page.reads("this sign-in was not started in this browser", ".problem")
    assert "Call us" not in page.text()
    assert page.run("return location.hash").split("?")[0] == "#/"


def test_token_ends(browser: Any, provided: tuple[SubprocessServer, Provider]) -> None:
    """
    Without a refresh token the session ends with the ID token. It is announced, and the user signs in again with the
    provider in another window, without leaving the view.
    """
    server, provider = provided
    provider.refreshes, provider.lifetime = False, 200
    page = fresh(browser, server)
    page.find("#oidc").click()
    at_provider(page, "dora")
    page.reads("You will be signed out in 4 minutes.", ".session-notice")
    page.open("#/new/-/configmaps")
    page.write("name: ", "name: kept")
    page.find("#sign-in-again").click()
    page.reads("The page stays as it is, with your unsaved changes.", "dialog")
    page.picture("sign-in-again")
    provider.lifetime = 900
    first = browser.current_window_handle
    page.find("dialog #oidc").click()
    page.until(lambda: len(browser.window_handles) == 2)
    (other,) = set(browser.window_handles) - {first}
    browser.switch_to.window(other)
    at_provider(page, "dora")
    page.until(lambda: other not in browser.window_handles or page.all(".who"))
    if other in browser.window_handles:
        browser.close()
    browser.switch_to.window(first)
    page.until(lambda: not page.all("dialog") and not page.all(".session-notice"))
    page.find("#review").click()
    page.find("#save").click()
    page.reads("name: kept", ".yaml")


def test_signin_link(browser: Any, provided: tuple[SubprocessServer, Provider]) -> None:
    """An operator creates a link with the kubeconfig in the data directory; it signs in once."""
    server, _ = provided
    command = [sys.executable, "-m", "kubetwist", "token", "signin-link"]
    kubeconfig = f"--kubeconfig={server.data_dir / 'admin.kubeconfig'}"
    done = subprocess.run([*command, kubeconfig], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    link = done.stdout.strip()
    page = fresh(browser, server)
    browser.get("about:blank")
    browser.get(link)
    page.reads("kubernetes-admin", ".who")
    assert page.run("return location.hash") == "#/"
    page = fresh(browser, server)
    browser.get("about:blank")
    browser.get(link)
    page.reads("This link was used before", ".problem")
    refused = subprocess.run(
        [*command, f"--kubeconfig={server.connection.as_user('eve').kubeconfig}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 1
    assert "forbidden" in refused.stderr
