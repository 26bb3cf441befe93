"""Tests for logs in the page, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import ChildKubeAPI

from .browser import Page, another_origin, make, signed_in

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
HOSTILE = [
    "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script>",
    "\x1b]0;title\x07\x1b[2J\x1b[1;31mred\x1b[0m "
    "\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\ \x1b[999999999;5;m\x1b[",
    "\u202egnp.exe\u0000\u009b31m",
    "x" * 40_000,
]
#: Lines of a web server, with colours.
LEVELS = (
    "\x1b[32mINFO\x1b[0m ",
    "\x1b[32mINFO\x1b[0m ",
    "\x1b[33mWARN\x1b[0m ",
    "\x1b[32mINFO\x1b[0m ",
    "\x1b[1;31mERROR\x1b[0m",
)
MESSAGES = (
    "GET /cart 200 \x1b[2m12 ms\x1b[0m",
    "POST /cart 201 \x1b[2m31 ms\x1b[0m",
    "GET /stock took \x1b[33m840 ms\x1b[0m",
)
REQUESTS = [f"{LEVELS[n % 5]} \x1b[36m[worker-{n % 3}]\x1b[0m {MESSAGES[n % 7 % 3]}" for n in range(60)]
IMAGES: dict[str, Any] = {
    "web": {"logs": {"lines": ["starting", "\x1b[31mERROR\x1b[0m one"], "every": "100ms", "line": "tick {n}"}},
    "proxy": {"logs": ["proxy ready"]},
    "once": {"logs": ["first", "last"], "run_for": "1s"},
    "failing": {"logs": {"lines": ["run begins"]}, "run_for": "1s", "exit": [3, 0]},
    "unsteady": {"logs": ["run begins"], "run_for": "50s", "exit": [3, 3, 0]},
    "shop": {
        "logs": [*REQUESTS, "\x1b[1;31mERROR\x1b[0m \x1b[36m[worker-0]\x1b[0m GET /pay failed: connection refused"]
    },
    "hostile": {"logs": [*HOSTILE, "after"]},
    "long": {"logs": [f"line {number} {'even' if number % 2 == 0 else 'odd'}" for number in range(3000)]},
    "fast": {"logs": {"every": "1ms", "line": "request {n} GET /index.html 200"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildKubeAPI]:
    """A server with a simulated node, and a pod for each image."""
    path = tmp_path_factory.mktemp("images") / "images.yaml"
    path.write_text(json.dumps({"images": IMAGES}))
    arguments = ("--in-memory", "--fake-nodes=1", "--controllers=*,+workloads", f"--fake-images={path}")
    with ChildKubeAPI(*arguments) as server:
        yield server


@pytest.fixture
def page(browser: Any, server: ChildKubeAPI) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, server)


def pod(server: ChildKubeAPI, name: str, *images: str, **spec: Any) -> None:
    """Create a pod, and wait until it runs."""
    containers = [{"name": image, "image": image} for image in images]
    make(server, f"{CORE}/pods", {"metadata": {"name": name}, "spec": {"containers": containers} | spec})
    server.wait_for(f"pods/{name}", where=lambda pod: pod["status"].get("phase") not in (None, "Pending"))


def open_logs(page: Page, name: str) -> None:
    """Open the tab of a pod's logs."""
    page.open(f"#/object/-/pods/default/{name}/logs")
    page.find(".log")


def follows(page: Page) -> bool:
    """Return whether the log is at its end."""
    script = "const log = document.querySelector('.log'); return log.scrollHeight - log.scrollTop - log.clientHeight"
    return float(page.run(script)) < 2


def test_follow(page: Page, server: ChildKubeAPI) -> None:
    """New lines are drawn; scrolling up pauses, and the end of the log follows again."""
    pod(server, "web", "web", "proxy")
    page.open("#/object/-/pods/default/web")
    page.until(lambda: [link for link in page.all(".tabs a") if link.text == "Logs"])[0].click()
    page.reads("tick 5", ".log")
    page.reads("Following", "#log-state")
    assert page.run("return document.querySelector('.log .f1').textContent") == "ERROR"
    page.until(lambda: "tick 60" in page.content(".log") and follows(page))
    page.run("document.querySelector('.log').scrollTop = 0")
    page.reads("Paused", "#log-state")
    page.reads("Follow (", "#follow")
    drawn = len(page.all(".line"))
    page.until(lambda: int(page.text("#follow").split("(")[1].split()[0]) > 5)
    assert len(page.all(".line")) == drawn
    page.find("#follow").click()
    page.until(lambda: len(page.all(".line")) > drawn + 5 and follows(page))
    page.find("#follow").click()
    page.reads("Paused", "#log-state")


def test_options(page: Page, server: ChildKubeAPI) -> None:
    """The container, timestamps, the number of lines and wrapping can be chosen."""
    pod(server, "options", "long", "proxy", initContainers=[{"name": "setup", "image": "proxy"}])
    open_logs(page, "options")
    page.until(lambda: page.content(".block:last-child .line:last-child") == "line 2999 odd")
    page.reads("1000 lines", "#log-state")
    page.run(
        "const tail = document.querySelector('#tail'); tail.value = '100'; tail.dispatchEvent(new Event('change'))"
    )
    page.until(lambda: len(page.all(".line")) == 100)
    page.find("#timestamps").click()
    page.until(lambda: page.run("return /^20\\d\\d-.*Z line 29/.test(document.querySelector('.line')?.textContent)"))
    page.find("#wrap").click()
    page.until(lambda: page.all(".log:not(.wraps)"))
    names = page.run("return [...document.querySelectorAll('#container option')].map((one) => one.textContent)")
    assert names == ["long", "proxy", "setup (init)"]
    page.run(
        "const one = document.querySelector('#container'); one.value = 'proxy'; one.dispatchEvent(new Event('change'))"
    )
    page.reads("proxy ready", ".log")
    assert len(page.all(".line")) == 1


def test_search(page: Page, server: ChildKubeAPI) -> None:
    """Lines with a text are counted, visited and filtered."""
    pod(server, "search", "long")
    open_logs(page, "search")
    page.until(lambda: len(page.all(".line")) == 1000)
    page.find("#search-log").send_keys("ODD")
    page.reads("– of 500 lines", "#found")
    page.press("ENTER")
    page.reads("1 of 500 lines", "#found")
    assert page.content(".line.current") == "line 2001 odd"
    assert page.content(".line.current mark") == "odd"
    page.find("#previous-match").click()
    page.reads("500 of 500 lines", "#found")
    page.find("#only-found").click()
    lines = "[...document.querySelectorAll('.line')]"
    visible = f"return {lines}.filter((one) => getComputedStyle(one).display !== 'none').length"
    assert page.run(visible) == 500
    page.find("#search-log").click()
    page.press("a", held="CONTROL")
    page.press("DELETE")
    page.find("#search-log").send_keys("no such text")
    page.reads("not found", "#found")
    assert page.run(visible) == 0
    page.find("#search-log").click()
    page.press("a", held="CONTROL")
    page.press("DELETE")
    page.until(lambda: page.run(visible) == 1000)
    assert page.all(".log mark") == []


def test_previous(page: Page, server: ChildKubeAPI) -> None:
    """The log of the run before the last restart is shown; without one, the reason is."""
    pod(server, "failing", "failing")
    server.wait_for(
        "pods/failing",
        where=lambda pod: (
            pod["status"]["containerStatuses"][0]["state"].get("terminated") is not None
            or pod["status"]["containerStatuses"][0]["state"].get("waiting") is not None
        ),
    )
    open_logs(page, "failing")
    page.reads("run begins", ".log")
    page.reads("The run has ended. The container:", ".streams")
    server.advance_time(20)
    server.wait_for("pods/failing", where=lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] > 0)
    page.find("#previous").click()
    page.reads("run begins", ".log")
    page.reads("The log has ended.", ".streams")
    pod(server, "young", "proxy")
    open_logs(page, "young")
    page.reads("proxy ready", ".log")
    page.find("#previous").click()
    page.reads("previous terminated container", ".streams .problem")


def test_restarts(page: Page, server: ChildKubeAPI) -> None:
    """Each further run of a container is followed, below a line that separates it, until the last one."""
    pod(server, "unsteady", "unsteady", restartPolicy="OnFailure")
    open_logs(page, "unsteady")
    page.reads("run begins", ".log")
    for restart in (1, 2):
        server.advance_time(60)
        page.reads("The run has ended. The container: CrashLoopBackOff", ".streams")
        server.advance_time(60)
        page.until(lambda restart=restart: len(page.all(".line.separates")) == restart)
        page.until(lambda restart=restart: page.content(".log").count("run begins") == restart + 1)
        page.reads("Following", "#log-state")
    lines = page.run("return [...document.querySelectorAll('.line')].map((one) => one.textContent)")
    assert lines[:3] == ["run begins", "The container has started again: restart 1, after Error (3).", "run begins"]
    assert lines[3].startswith("The container has started again: restart 2, after")
    page.find("#search-log").send_keys("container")
    page.reads("not found", "#found")
    page.picture("restarts")
    server.advance_time(60)
    page.reads("The log has ended. The container: Completed", ".streams")


def test_other_run(page: Page, server: ChildKubeAPI) -> None:
    """The next run is not followed after another container was chosen."""
    pod(server, "two", "unsteady", "proxy")
    open_logs(page, "two")
    page.reads("run begins", ".log")
    server.advance_time(60)
    page.reads("The run has ended. The container:", ".streams")
    page.run(
        "const one = document.querySelector('#container'); one.value = 'proxy';one.dispatchEvent(new Event('change'))"
    )
    page.reads("proxy ready", ".log")
    server.advance_time(60)
    server.wait_for("pods/two", where=lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] > 0)
    page.reads("Following", "#log-state")
    assert page.content(".log") == "proxy ready"


def test_end(page: Page, server: ChildKubeAPI) -> None:
    """The end of a pod ends its log, which can be read again and downloaded."""
    pod(server, "once", "once", restartPolicy="Never")
    open_logs(page, "once")
    page.reads("The log has ended. The container: Completed", ".streams")
    page.run(
        "window.saved = []; const create = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return create(blob); }"
    )
    page.find("#download-log").click()
    page.until(lambda: page.run("return window.saved") == ["first\nlast\n"])
    page.find("#follow").click()
    page.until(lambda: len(page.all(".line")) == 2)
    pod(server, "lost", "web")
    open_logs(page, "lost")
    page.reads("tick 3", ".log")
    server.request("DELETE", f"{CORE}/pods/lost?gracePeriodSeconds=0")
    page.until(lambda: "The object was deleted." in page.text(".streams") or "log has ended" in page.text(".streams"))


def test_workload(page: Page, server: ChildKubeAPI) -> None:
    """A workload has a choice of its pods."""
    labels = {"app": "shop"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "shop"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    make(server, f"{APPS}/deployments", {"metadata": {"name": "shop"}, "spec": spec})
    server.wait_for("deployments/shop", condition="Available")
    page.open("#/object/apps/deployments/default/shop/logs")
    page.reads("GET /pay failed", ".log")
    names = page.run("return [...document.querySelectorAll('#pod option')].map((one) => one.value)")
    assert len(names) == 2 and all(name.startswith("shop-") for name in names)
    page.run(
        "const one = document.querySelector('#pod'); one.value = arguments[0]; one.dispatchEvent(new Event('change'))",
        names[1],
    )
    page.until(lambda: names[1] in page.run("return document.querySelector('.log').getAttribute('aria-label')"))
    page.reads("GET /pay failed", ".log")
    page.find("#search-log").send_keys("error")
    page.find("#previous-match").click()
    page.reads("13 of 13 lines", "#found")
    page.picture("logs")


def test_hostile(page: Page, server: ChildKubeAPI) -> None:
    """Lines with markup, control sequences or without end are text, and the page works on."""
    pod(server, "hostile", "hostile")
    open_logs(page, "hostile")
    page.until(lambda: page.content(".log").endswith("after"))
    lines = page.run("return [...document.querySelectorAll('.line')].map((one) => one.textContent)")
    assert lines[0] == HOSTILE[0]
    assert lines[1] == "red link "
    assert page.content(".line .bold.f1") == "red"
    assert "\u0000" not in lines[2] and "\u009b" not in lines[2]
    assert max(map(len, lines)) <= 16_384 and "".join(lines[3:-1]) == HOSTILE[3]
    assert page.all(".log img, .log script, .log a") == []
    assert page.run("return document.title") == "hostile · kubetwist"


def test_limits(page: Page, server: ChildKubeAPI) -> None:
    """A log that is written fast is drawn in batches: the page stays usable and keeps 10,000 lines."""
    pod(server, "fast", "fast")
    open_logs(page, "fast")
    page.reads("request", ".log")
    server.advance_time(30)
    page.until(lambda: "earlier lines are not shown" in page.text("#log-state"))
    assert len(page.all(".line")) <= 10_000
    page.find("#search-log").send_keys("GET")
    page.until(lambda: page.text("#found").endswith("of 10000 lines"))


def test_permissions(page: Page, server: ChildKubeAPI) -> None:
    """The tab is offered if the user may read logs; an address of it shows why it is refused."""
    make(server, f"{CORE}/serviceaccounts", {"metadata": {"name": "reader"}})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    make(server, f"{roles}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    make(server, f"{roles}/rolebindings", {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role})
    pod(server, "private", "proxy")
    _, token = server.request("POST", f"{CORE}/serviceaccounts/reader/token", {"spec": {}})
    page.sign_in(token["status"]["token"])
    page.open("#/object/-/pods/default/private")
    page.reads("proxy", ".details")
    assert "Logs" not in page.text(".tabs")
    open_logs(page, "private")
    page.reads('cannot get resource "pods/log"', ".streams .problem")


def test_handshake(page: Page, server: ChildKubeAPI) -> None:
    """A handshake needs the key and the origin: with the cookie alone, or from another page, it is refused."""
    pod(server, "socket", "proxy")
    script = """
        const [url, protocols, done] = arguments;
        const socket = new WebSocket(url, protocols);
        socket.onopen = () => done(socket.protocol); socket.onerror = () => done("refused");
    """
    url = f"wss{server.url.removeprefix('https')}{CORE}/pods/socket/log?follow=true"
    key = page.run("return localStorage.getItem('kubetwist-key')")
    attempt = page.browser.execute_async_script
    assert attempt(script, url, ["binary.k8s.io"]) == "refused"
    assert attempt(script, url, ["csrf.kubetwist.dev.x", "binary.k8s.io"]) == "refused"
    assert attempt(script, url, [f"csrf.kubetwist.dev.{key}", "binary.k8s.io"]) == "binary.k8s.io"
    # Another port of the same host is the same site: its requests have the cookie.
    with another_origin() as elsewhere:
        page.browser.get(elsewhere)
        assert attempt(script, url, [f"csrf.kubetwist.dev.{key}", "binary.k8s.io"]) == "refused"
