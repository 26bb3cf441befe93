"""
Measure the web page's memory while objects change, and its time for a table of many rows, in headless Chromium.

    python benchmarks/uimemory.py [--minutes 15] [--rows 1000] [--rate 50] [--many 50000]

The first part creates `--many` ConfigMaps, opens their table, and prints the time to the first rows and to all of them,
the JavaScript heap for each row, and the frames while it is scrolled. The second part opens a table of `--rows`
ConfigMaps and changes `--rate` of them per second; every 30 seconds it collects garbage and prints the heap, the number
of nodes and of event listeners. The growth is the slope of a line through the samples of the second half. A part is
skipped with 0 rows or minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from http.client import HTTPSConnection
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load import trusting

from kubetwist.testing import SubprocessServer
from tests.e2e.browser import Page, start_browser

#: Seconds between two samples.
INTERVAL = 30.0
#: Connections that create objects.
CREATORS = 4
#: Keeps the times of the frames while it scrolls through the table, in milliseconds.
SCROLL = """
const [frames, done] = arguments, view = document.querySelector('.scroller'), times = [];
let last = performance.now(), count = 0;
const step = (now) => {
    times.push(now - last);
    last = now;
    view.scrollTop = (view.scrollHeight - view.clientHeight) * (count % 100) / 100;
    if (++count < frames) requestAnimationFrame(step); else done(times.slice(1).sort((a, b) => a - b));
};
requestAnimationFrame(step);
"""
#: Keeps when the first rows are there, and when all are.
OBSERVE = """
const wanted = arguments[0], start = performance.now();
window.seen = {};
const look = () => {
    const count = parseInt(document.querySelector('.count')?.textContent || '0'), now = performance.now() - start;
    if (document.querySelector('.grid tbody tr:not([aria-hidden])')) window.seen.first ??= now;
    if (count >= wanted && document.querySelector('.tableview').dataset.state === 'live') window.seen.all = now;
    else requestAnimationFrame(look);
};
location.hash = arguments[1];
requestAnimationFrame(look);
"""


class Writer:
    """A connection that creates and changes ConfigMaps."""

    def __init__(self, server: SubprocessServer, namespace: str) -> None:
        parts = urlsplit(server.url)
        context: SSLContext = trusting()
        self.connection = HTTPSConnection(parts.hostname or "", parts.port, context=context)
        self.headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"

    def send(self, method: str, path: str, obj: Any, **headers: str) -> None:
        """Send a request."""
        self.connection.request(method, path, json.dumps(obj), self.headers | headers)
        response = self.connection.getresponse()
        body = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {body[:200]!r}")

    def create(self, number: int) -> None:
        """Create the ConfigMap of a number."""
        labels = {"app": f"app-{number % 50}", "tier": "front"}
        self.send("POST", self.path, {"metadata": {"name": f"m-{number:06}", "labels": labels}, "data": {"a": "1"}})

    def change(self, number: int, beat: int) -> None:
        """Change the number of the ConfigMap's keys, which its row has, and a label."""
        data = {f"key-{one}": "x" if one < beat % 5 else None for one in range(5)}
        patch = {"metadata": {"labels": {"beat": str(beat)}}, "data": data}
        headers = {"Content-Type": "application/merge-patch+json"}
        self.send("PATCH", f"{self.path}/m-{number:06}", patch, **headers)


def fill(server: SubprocessServer, namespace: str, count: int) -> None:
    """Create a namespace with ConfigMaps."""
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})

    def work(first: int) -> None:
        writer = Writer(server, namespace)
        for number in range(first, count, CREATORS):
            writer.create(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(CREATORS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sample(browser: Any) -> dict[str, float]:
    """Collect garbage; return the used heap in bytes, and the numbers of nodes and event listeners."""
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    counters = browser.execute_cdp_cmd("Memory.getDOMCounters", {})
    used = browser.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]
    return {"heap": used, "nodes": counters["nodes"], "listeners": counters["jsEventListeners"]}


def measure_many(page: Page, server: SubprocessServer, count: int) -> None:
    """Measure a table of many rows."""
    before = time.perf_counter()
    fill(server, "many", count)
    print(f"{count} ConfigMaps created in {time.perf_counter() - before:.0f} s", flush=True)
    page.open("#/access")
    empty = sample(page.browser)["heap"]
    page.run(OBSERVE, count, "#/list/-/configmaps?namespace=many")
    seen = page.until(lambda: (found := page.run("return window.seen")).get("all") and found, 600)
    heap = sample(page.browser)["heap"]
    print(f"first rows after {seen['first']:.0f} ms, all after {seen['all'] / 1000:.1f} s")
    print(f"heap {heap / 1e6:.1f} MB, {(heap - empty) / count:.0f} bytes for each row")
    for name in ("", "Name", "Data"):
        if name:
            script = (
                "[...document.querySelectorAll('th button')].find((one) => one.textContent === arguments[0]).click()"
            )
            page.run(script, name)
        times = page.browser.execute_async_script(SCROLL, 300)
        slow = sum(one > 50 for one in times)
        order = f"sorted by {name}" if name else "in order"
        print(
            f"scrolled {order}: frames {times[len(times) // 2]:.0f} ms (median), {times[int(len(times) * 0.99)]:.0f} ms"
            f" (99th percentile), {slow} of {len(times)} over 50 ms",
            flush=True,
        )


def slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the regression line."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def measure_growth(page: Page, server: SubprocessServer, rows: int, rate: float, minutes: float) -> None:
    """Measure the memory while rows change."""
    fill(server, "changing", rows)
    page.open("#/list/-/configmaps?namespace=changing")
    # Beside them there is the ConfigMap with the certificate of the authority.
    page.until(lambda: page.text(".count").isdigit() and int(page.text(".count")) >= rows)
    ended = threading.Event()
    sent = 0

    def change() -> None:
        nonlocal sent
        writer, start = Writer(server, "changing"), time.perf_counter()
        while not ended.is_set():
            writer.change(sent % rows, sent // rows)
            sent += 1
            ended.wait(max(0.0, start + sent / rate - time.perf_counter()))

    thread = threading.Thread(target=change)
    thread.start()
    samples: list[tuple[float, dict[str, float]]] = []
    start = time.perf_counter()
    try:
        while (passed := time.perf_counter() - start) < minutes * 60:
            found = sample(page.browser)
            samples.append((passed, found))
            print(
                f"{passed:6.0f} s  {sent:8} changes  heap {found['heap'] / 1e6:6.2f} MB  {found['nodes']:6.0f} nodes"
                f"  {found['listeners']:5.0f} listeners",
                flush=True,
            )
            time.sleep(INTERVAL)
    finally:
        ended.set()
        thread.join()
    half = samples[len(samples) // 2 :]
    growth = slope([(at, found["heap"]) for at, found in half]) * 3600
    print(f"{sent / max(passed, 1):.0f} changes/s; growth {growth / 1e6:+.2f} MB per hour, of {rows} rows")


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--many", type=int, default=50_000)
    options = parser.parse_args()
    browser = start_browser()
    browser.set_script_timeout(600)
    try:
        with SubprocessServer("--in-memory") as server:
            page = Page(browser, server.url)
            page.sign_in(server.token)
            if options.many:
                measure_many(page, server, options.many)
            if options.minutes and options.rows:
                measure_growth(page, server, options.rows, options.rate, options.minutes)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
