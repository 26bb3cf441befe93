"""
Measure the cost of metrics alone: microseconds per GET and per create, without the rest of the server.

Usage: python benchmarks/metrics.py

A request runs the metrics code before its handler and at its end, with empty handlers in between. A create also runs
the measurements of admission plugins and of the write to the storage.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kubetwist.api.resource import UserInfo
from kubetwist.http.requestinfo import request_info_of
from kubetwist.metrics.registry import Histogram, Registry
from kubetwist.metrics.requests import RequestMetrics
from kubetwist.resources.handlers.watch import WatchMetrics
from kubetwist.storage.cache.metrics import CacheMetrics

#: Calls of the default admission plugins for a pod.
PLUGINS = 22
ROUNDS = 100_000


class StubRequest:
    """The attributes of a request that metrics use."""

    termination_code = 0
    switched = False
    audit_id = user_agent = ""
    clientproto = b"HTTP/1.1"
    client: Any = None
    non_sli_seconds = apf_queue_seconds = 0.0
    times: Any = None
    impersonator: Any = None
    apf_classification: Any = None
    user: Any = UserInfo("admin", groups=("system:masters",))
    startedWriting = 1
    sentLength = 400

    def __init__(self, method: bytes, uri: bytes, code: int, body: int) -> None:
        self.method, self.uri, self.code, self.body_length = method, uri, code, body
        self.info = request_info_of(method, uri)
        self.fields = {b"user-agent": [b"kubectl/v1.36.2"], b"content-type": [b"application/json"]}
        self.query: dict[str, list[str]] = {}
        self.authenticated_at = self.authorized_at = 0.0
        self.path = uri.partition(b"?")[0]
        self.started_at = time.perf_counter()

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of a field."""
        values = self.fields.get(name)
        return values[0] if values else None


def best(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the microseconds of one call: the minimum of seven runs."""
    found = float("inf")
    for _ in range(7):
        began = time.process_time()
        for _ in range(rounds // 7):
            call()
        found = min(found, (time.process_time() - began) / (rounds // 7))
    return found * 1e6


def counted(request: StubRequest) -> float:
    """Run the metrics code of one request."""
    metrics = RequestMetrics(Registry(), lambda resource: True, list)
    handler = metrics.after_authorization(lambda request: None)

    def whole() -> None:
        request.authenticated_at = time.perf_counter()
        handler(request)
        metrics.ended(request, time.perf_counter())

    whole()
    return best(whole)


def plugins() -> float:
    """Run the measurements of the plugins of a write, in one phase."""
    seconds = [Histogram((0.005, 0.025, 0.1, 0.5, 1.0, 2.5)) for _ in range(PLUGINS)]

    def chain() -> None:
        now = time.perf_counter()
        for one in seconds:
            before, now = now, time.perf_counter()
            one.observe(now - before)

    return best(chain, ROUNDS // 5)


def main() -> None:
    """Measure and print."""
    get = counted(StubRequest(b"GET", b"/api/v1/namespaces/default/pods/a", 200, 0))
    post = counted(StubRequest(b"POST", b"/api/v1/namespaces/default/pods?fieldValidation=Strict", 201, 900))
    around = plugins()
    cache_metrics = CacheMetrics()
    stored = best(lambda: cache_metrics.observe_backend_request("create", time.perf_counter() - 0.001))
    events = WatchMetrics()
    data = b"x" * 700
    shared = best(lambda: events.observe(data))
    print(f"GET                      {get:6.2f} us")
    print(f"create, the request      {post:6.2f} us")
    print(f"create, {PLUGINS} plugins       {around:6.2f} us")
    print(f"create, the storage      {stored:6.2f} us")
    print(f"create, together         {post + around + stored:6.2f} us")
    print(f"an event to each watch   {shared:6.2f} us")


if __name__ == "__main__":
    main()
