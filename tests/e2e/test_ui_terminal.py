"""Tests for the terminal in the page, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import ChildKubeAPI

from .browser import Page, make, signed_in

CORE = "/api/v1/namespaces/default"
HOSTILE = (
    "\x1b[999999999;999999999H\x1b[H<img src=x onerror=\"document.title='broken in'\">\x1b]0;title\x07"
    "\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\ \x1b[38;2;255;0;0mcolour\x1b[0m\x1b[4:3mcurly\x1b[0m"
    "\x1bPq\x1b\\\x1b[20t\x1b[6n\x1b]52;c;aGk=\x07"
)
IMAGES: dict[str, Any] = {
    "web": {
        "exec": {
            "hostile": {"stdout": HOSTILE + "\r\nafter\r\n"},
            "fails": {"stdout": "out\n", "exit": 3},
            "floods": {"stdout": "x" * 79 + "\n" + "0123456789\n" * 20_000 + "end of flood\n"},
        },
        "files": {"/etc/version": "1.2.3\n"},
    },
    "tools": {"files": {"/etc/version": "tools\n"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildKubeAPI]:
    """A server with a simulated node, and a pod of two containers."""
    path = tmp_path_factory.mktemp("images") / "images.yaml"
    path.write_text(json.dumps({"images": IMAGES}))
    with ChildKubeAPI("--in-memory", "--fake-nodes=1", f"--fake-images={path}") as server:
        pod(server, "web")
        yield server


def pod(server: ChildKubeAPI, name: str) -> None:
    """Create a pod, and wait until it runs."""
    containers = [{"name": image, "image": image} for image in ("web", "tools")]
    make(server, f"{CORE}/pods", {"metadata": {"name": name}, "spec": {"containers": containers}})
    server.wait_for(f"pods/{name}", condition="Ready")


@pytest.fixture
def page(browser: Any, server: ChildKubeAPI) -> Page:
    """The page, signed in as an administrator; it records violations of its policy, and messages to the server."""
    page = signed_in(browser, server)
    page.run("""
        window.violations = [];
        addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
        window.sent = [];
        const { send } = WebSocket.prototype;
        WebSocket.prototype.send = function (data) {
            window.sent.push(new TextDecoder().decode(data)); send.call(this, data);
        };
    """)
    return page


def screen(page: Page) -> str:
    """Return the text of the terminal, with a line end after each row."""
    rows = page.run("return [...document.querySelectorAll('.xterm-rows > div')].map((row) => row.textContent)")
    return "\n".join(row.replace("\u00a0", " ").rstrip() for row in rows)


def shows(page: Page, text: str) -> None:
    """Wait until the terminal shows a text."""
    page.until(lambda: text in screen(page))


def connect(page: Page, name: str = "web", command: str = "", container: str = "") -> None:
    """Run a command with a terminal."""
    page.open("#/")
    page.open(f"#/object/-/pods/default/{name}/terminal")
    page.find("#connect")
    if command:
        page.find("#command").clear()
        page.find("#command").send_keys(command)
    if container:
        page.run("document.querySelector('#container').value = arguments[0]", container)
    page.find("#connect").click()


def test_shell(page: Page) -> None:
    """What is typed reaches the command, and its output and exit code are shown."""
    page.open("#/object/-/pods/default/web")
    page.until(lambda: [link for link in page.all(".tabs a") if link.text == "Terminal"])[0].click()
    page.find("#connect")
    assert page.all(".xterm") == []
    page.press("ENTER")
    page.reads("Connected", "#terminal-state")
    shows(page, "#")
    page.press("echo grüße", "ENTER")
    shows(page, "\ngrüße\n")
    page.press("cat /etc/version", "ENTER")
    shows(page, "\n1.2.3\n")
    page.press("exit 7", "ENTER")
    page.reads("The command has ended with exit code 7.", "#terminal-messages")
    assert page.text("#connect") == "Connect"
    page.find("#connect").click()
    page.reads("Connected", "#terminal-state")
    page.until(lambda: "exit 7" not in screen(page))
    assert page.run("return window.violations") == []


def test_command(page: Page) -> None:
    """The container and the command can be chosen; a command that is not found is reported."""
    connect(page, command="cat '/etc/version'", container="tools")
    shows(page, "tools")
    page.reads("exit code 0", "#terminal-messages")
    connect(page, command="fails")
    page.reads("exit code 3", "#terminal-messages")
    connect(page, command="nothing-like-it")
    page.until(lambda: page.text("#terminal-messages") != "")
    assert "executable file not found" in page.text("#terminal-messages") + screen(page)
    connect(page, command="sh 'a")
    page.reads("A quote of the command is not closed", "#terminal-messages")


def test_size(page: Page) -> None:
    """The command gets the size of the terminal, and each change of it."""
    connect(page)
    page.reads("Connected", "#terminal-state")

    def sizes() -> list[dict[str, int]]:
        sent: list[str] = page.run("return window.sent")
        return [json.loads(one[1:]) for one in sent if one.startswith("\x04")]

    first = page.until(sizes)[0]
    assert first["Width"] > 60 and first["Height"] > 15
    page.run("document.querySelector('.terminal-frame').style.maxWidth = '400px'")
    page.until(lambda: sizes()[-1]["Width"] < first["Width"] - 20)
    assert sizes()[-1]["Height"] == first["Height"]


def test_hostile(page: Page) -> None:
    """Output with markup, links and control sequences is drawn as text, within the policy of the page."""
    connect(page, command="hostile")
    page.reads("exit code 0", "#terminal-messages")
    shows(page, "after")
    assert "<img src=x onerror=" in screen(page)
    assert page.all(".xterm img, .xterm a, .xterm script") == []
    span = "[...document.querySelectorAll('.xterm-rows span')].find((one) => one.textContent === arguments[0])"
    assert page.run(f"return getComputedStyle({span}).color", "colour") == "rgb(255, 0, 0)"
    assert page.run("return document.title") == "web · kubetwist"
    assert page.run("return window.violations") == []
    page.run(f"{span}.click()", "link")
    assert len(page.browser.window_handles) == 1


def test_flood(page: Page) -> None:
    """Large output is drawn to its end."""
    connect(page, command="floods")
    shows(page, "end of flood")
    page.reads("exit code 0", "#terminal-messages")


def test_end(page: Page, server: ChildKubeAPI) -> None:
    """The terminal can be disconnected; its style sheets are removed with it."""
    sheets = page.run("return document.adoptedStyleSheets.length")
    connect(page)
    page.reads("Connected", "#terminal-state")
    assert page.run("return document.adoptedStyleSheets.length") > sheets
    page.find("#connect").click()
    page.reads("Disconnected.", "#terminal-messages")
    assert "\u00ff\x00" in page.run("return window.sent.map((one) => one.replace('\\ufffd', '\\u00ff'))")
    page.open("#/")
    page.until(lambda: page.run("return document.adoptedStyleSheets.length") == sheets)


def test_end_of_pod(page: Page, server: ChildKubeAPI) -> None:
    """The end of a pod ends the command, with its exit code."""
    pod(server, "doomed")
    connect(page, "doomed")
    page.reads("Connected", "#terminal-state")
    assert server.request("DELETE", f"{CORE}/pods/doomed?gracePeriodSeconds=0")[0] == 200
    page.reads("The command has ended with exit code 137.", "#terminal-messages")


def test_keyboard(page: Page) -> None:
    """Tab goes to the command; after Escape it leaves the terminal."""
    connect(page)
    page.reads("Connected", "#terminal-state")
    focus = "return document.activeElement.className"
    page.until(lambda: page.run(focus) == "xterm-helper-textarea")
    page.press("TAB")
    page.until(lambda: "\x00\t" in page.run("return window.sent"))
    assert page.run(focus) == "xterm-helper-textarea"
    page.press("ESCAPE")
    page.press("TAB", held="SHIFT")
    page.until(lambda: page.run(focus) != "xterm-helper-textarea")


def test_permissions(page: Page, server: ChildKubeAPI) -> None:
    """The tab is offered if the user may run commands; an address of it shows why that is refused."""
    make(server, f"{CORE}/serviceaccounts", {"metadata": {"name": "viewer"}})
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list", "watch"]}]
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    make(server, f"{roles}/roles", {"metadata": {"name": "viewer"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"}
    make(server, f"{roles}/rolebindings", {"metadata": {"name": "viewer"}, "subjects": [subject], "roleRef": role})
    _, token = server.request("POST", f"{CORE}/serviceaccounts/viewer/token", {"spec": {}})
    page.sign_in(token["status"]["token"])
    page.open("#/object/-/pods/default/web")
    page.until(lambda: "Logs" in page.text(".tabs"))
    assert "Terminal" not in page.text(".tabs")
    connect(page)
    page.reads('cannot get resource "pods/exec"', "#terminal-messages")


def test_interrupted(browser: Any) -> None:
    """The end of the connection is shown, and input is not accepted any more."""
    with ChildKubeAPI("--in-memory", "--fake-nodes=1") as server:
        pod(server, "web")
        page = Page(browser, server.url)
        page.go_on(server.token, "kubetwist-test-admin")
        connect(page)
        page.reads("Connected", "#terminal-state")
        server.stop()
        page.reads("The connection was interrupted.", "#terminal-messages")
        assert page.text("#terminal-state") == ""
        assert page.text("#connect") == "Connect"
        assert page.run("return document.querySelector('.xterm-helper-textarea').readOnly") is True
