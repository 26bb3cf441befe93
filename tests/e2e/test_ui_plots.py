"""Tests for the plots of metrics in the page, in a real browser."""

from __future__ import annotations

import gzip
import math
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetwist.metrics.history.increments import Observations
from kubetwist.metrics.history.recorder import Bounds, HistoryRecorder
from kubetwist.metrics.history.samples import Errors, Sample
from kubetwist.server.history.recording import FILE
from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

CORE = "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
HOSTILE = "<img src=x onerror=\"document.title='run'\">\u202e&amp;"
MERGE = "application/merge-patch+json"
#: Requests per sample, by verb and resource.
REQUESTS = {
    ("GET", "pods"): 40,
    ("PATCH", "pods/status"): 30,
    ("POST", "events"): 22,
    ("LIST", "configmaps"): 15,
    ("PUT", "leases.coordination.k8s.io"): 12,
    ("GET", "nodes"): 9,
    ("GET", "deployments.apps"): 7,
    ("LIST", "secrets"): 4,
    ("DELETE", "pods"): 3,
}
BOUNDS = Bounds((0.005, 0.025, 0.05), (0.001, 0.0025, 0.005, 0.01), (0.005, 0.025, 0.05))


def write_history(folder: Path) -> None:
    """Write the history of the last 50 minutes of a busy server, which was restarted."""
    recorder = HistoryRecorder(BOUNDS)
    begin = time.time() - 3000
    recorder.mark(begin, "start")
    for number in range(290):
        at = begin + 10 * number + (60 if number > 200 else 0)
        if number == 201:
            recorder.mark(at, "start")
        wave = 1 + 0.6 * math.sin(number / 25)
        sample = Sample(levels={"system": (wave, 0.0), "workload-low": (2 * wave, max(0.0, wave - 1.4))})
        for key, count in REQUESTS.items():
            served = int(count * wave * (1 + 0.15 * math.sin(number * count)))
            slow = served // (8 if 150 < number < 160 else 30)
            seconds = served * 0.0012 + slow * 0.02
            sample.requests[key] = Observations(seconds, [served - slow, slow - slow // 2, slow // 2, 0])
            if (number + count) % 7 == 0:
                sample.errors[key] = Errors(count % 3, 0.0, float(number % 70 == 0))
        sample.delays = Observations(0.05, [36, 3, number % 2, number % 30 == 0, 0])
        sample.storage = Observations(0.1, [int(20 * wave), number % 9 == 0, 0, 0])
        sample.sums = {"cpu": 1.5 * wave, "memory": 9e7 + 4e4 * number, "long_running": 30 + 10 * math.sin(number / 40)}
        sample.highest = {"revision": 60.0 * number + 25 * wave, "storage_size": 4e6 + 2e4 * number}
        sample.lowest = {"ready": 1.0}
        recorder.record(at, 10.0, sample)
    (folder / FILE).write_bytes(gzip.compress(recorder.snapshot()()))


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SubprocessServer]:
    """A server that continues the history of another process."""
    folder = tmp_path_factory.mktemp("busy") / "data"
    with SubprocessServer("--controllers=", data_dir=folder) as server:
        server.stop()
        write_history(folder)
        server.start()
        make(server, LEASES, {"metadata": {"name": "scheduler"}, "spec": {"holderIdentity": "first"}})
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def page(browser: Any, busy: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, busy)


def chart(title: str) -> str:
    """Return the selector of a plot."""
    return f".chart[aria-label='{title}']"


def paths(page: Page, title: str) -> list[str]:
    """Return the drawn shapes of a plot."""
    found: list[str] = page.run(
        "return [...document.querySelectorAll(arguments[0])].map((one) => one.getAttribute('d'))",
        f"{chart(title)} .drawing path",
    )
    return found


def test_last_hour(page: Page, busy: SubprocessServer) -> None:
    """What happened before the page was opened is drawn at once, with the restarts; new samples follow."""
    page.open("#/plots")
    page.until(lambda: len(paths(page, "Requests")) >= 5)
    assert max(len(path) for path in paths(page, "Requests")) > 1000
    page.reads("start", ".events")
    assert page.text(".events").count("start") == 3
    assert page.run(f'return document.querySelectorAll("{chart("Memory")} line.mark").length') == 3
    # The times of the axis are times of day, and values have a unit that fits.
    assert page.run(f'return document.querySelector("{chart("Memory")} h2 small").textContent') == "MB"
    page.picture("plots")
    newest = page.text(".bar .kind")
    page.until(lambda: page.text(".bar .kind") != newest)
    page.find("button[data-span='600']").click()
    page.until(lambda: page.all("button[data-span='600'][aria-pressed=true]"))
    page.until(lambda: max(len(path) for path in paths(page, "Memory")) < 1500)
    page.find("button[data-span='3600']").click()


def test_values(page: Page) -> None:
    """Values at a time are shown by the pointer and by keys; lines can be hidden; a table has all values."""
    from selenium.webdriver.common.action_chains import ActionChains

    page.open("#/plots")
    page.until(lambda: len(paths(page, "Latency")) == 2)
    drawing = page.find(f"{chart('Latency')} .drawing")
    ActionChains(page.browser).move_to_element(drawing).perform()
    page.until(lambda: "p99" in page.text(f"{chart('Latency')} .tip"))
    before = page.text(f"{chart('Latency')} .tip")
    page.run("arguments[0].focus()", drawing)
    page.press("ARROW_LEFT")
    page.until(lambda: page.text(f"{chart('Latency')} .tip") != before)
    page.until(lambda: "p50" in page.content(f"{chart('Latency')} .spoken"))
    page.press("HOME")
    page.press("ESCAPE")
    page.until(lambda: page.all(f"{chart('Latency')} .tip[hidden]"))
    page.find(f"{chart('Latency')} button[data-name=p99]").click()
    page.until(lambda: len(paths(page, "Latency")) == 1)
    page.find(f"{chart('Latency')} button[data-name=p99]").click()
    page.until(lambda: len(paths(page, "Latency")) == 2)
    page.find(f"{chart('Latency')} summary").click()
    page.until(lambda: page.run(f'return document.querySelectorAll("{chart("Latency")} tbody tr").length') > 200)
    head = page.run(
        f'return [...document.querySelectorAll("{chart("Latency")} thead th")].map((one) => one.textContent)'
    )
    assert head == ["Time", "p50", "p99"]


def choose(page: Page, title: str, text: str) -> None:
    """Choose what a plot shows."""
    from selenium.webdriver.support.ui import Select

    page.until(lambda: text in page.content(f"{chart(title)} select"))
    Select(page.find(f"{chart(title)} select")).select_by_visible_text(text)


def test_choices(page: Page) -> None:
    """Requests, errors and latencies are shown by verb and resource, and waiting requests by priority level."""
    page.open("#/plots")
    choose(page, "Requests", "by verb and resource")
    page.reads("PATCH pods/status", f"{chart('Requests')} .legend")
    page.reads("rest", f"{chart('Requests')} .legend")
    choose(page, "Errors", "by verb and resource")
    page.reads("GET pods", f"{chart('Errors')} .legend")
    choose(page, "Latency", "GET pods")
    page.until(lambda: len(paths(page, "Latency")) == 2)
    choose(page, "Priority levels", "waiting")
    page.reads("workload-low", f"{chart('Priority levels')} .legend")
    page.until(lambda: "system" not in page.text(f"{chart('Priority levels')} .legend"))


def test_hostile_names(page: Page, busy: SubprocessServer) -> None:
    """The name of a leader is shown as text."""
    patch = {"spec": {"holderIdentity": HOSTILE}}
    code, _ = busy.request("PATCH", f"{LEASES}/scheduler", patch, content_type=MERGE)
    assert code == 200
    page.open("#/plots")
    page.until(lambda: HOSTILE in page.content(".events"))
    assert page.all(".events img") == []
    assert "run" not in page.run("return document.title")


def test_hidden(page: Page) -> None:
    """A page that is not visible sends no requests; it continues when it is visible."""
    script = "Object.defineProperty(document, 'visibilityState', {value: arguments[0], configurable: true});"
    # Without the request of the start page.
    page.open("#/access")
    page.reads("My permissions", "h1")
    page.run("performance.clearResourceTimings()")
    page.run(script, "hidden")
    requests = (
        "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/ui/history')).length"
    )
    page.open("#/plots")
    page.reads("Plots", "h1")
    page.find(".charts .drawing")
    assert page.run(requests) == 0
    page.run(f"{script} document.dispatchEvent(new Event('visibilitychange'))", "visible")
    page.until(lambda: paths(page, "Memory"))
    assert page.run(requests) > 0


def test_narrow(page: Page) -> None:
    """The plots fit on a small screen."""
    size = page.browser.get_window_size()
    page.open("#/plots")
    page.until(lambda: paths(page, "Memory"))
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    try:
        page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        page.until(
            lambda: page.run(
                "return [...document.querySelectorAll('.chart:not([hidden]) .area')]"
                ".every((one) => one.scrollWidth <= one.clientWidth + 1)"
            )
        )
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.browser.set_window_size(size["width"], size["height"])


def test_forbidden(page: Page, busy: SubprocessServer) -> None:
    """Users who may not read the metrics are shown the reason, and the way to an explanation."""
    make(busy, f"{CORE}/serviceaccounts", {"metadata": {"name": "reader"}})
    token = make(busy, f"{CORE}/serviceaccounts/reader/token", {"spec": {}})["status"]["token"]
    page.sign_in(token)
    page.open("#/plots")
    page.reads('cannot get path "/metrics"', ".problem")
    assert page.all(".problem a[href='#/why?verb=get&path=%2Fmetrics']")
    page.sign_in(busy.token)


def test_workers(browser: Any) -> None:
    """The plots show the sum of all processes, and mark the restart of one of them."""
    with SubprocessServer("--in-memory", "--controllers=", "--workers=2") as server:
        page = Page(browser, server.url)
        page.sign_in(server.token)
        page.open("#/plots")
        page.until(lambda: paths(page, "Memory"))
        page.until(lambda: "POST" in page.text(f"{chart('Requests')} .legend"))
        # Three processes with Python and the server need more than two of them.
        values = "return document.querySelector(arguments[0]).textContent"
        assert float(page.run(values, f"{chart('Memory')} .legend b").split()[0]) > 150
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text("utf-8").split()
        os.kill(int(children[0]), signal.SIGKILL)
        page.reads("worker restarted", ".events")
        assert "Traceback" not in server.output(), server.output()
