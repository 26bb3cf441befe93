"""
Measure the cost of metrics and of priority and fairness in a whole server: the same requests with and without both.

  get       GET of one object, 8 connections
  list500   LIST with limit=500, 2 connections
  table500  the same as a Table
  create    POST of objects with unique names, 8 connections
  patch     merge PATCH of any of 500 objects, 8 connections
  apply     server-side apply of any of them, 8 connections

Two servers run, one of them without metrics of requests and without priorities. Requests are sent to them
alternately, --rounds times. The results are medians of the server's CPU time per request, which depends less on other
load than rates do. The last column is the remaining speed.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from load import Target, arguments, send
from twoservers import MAPS, fill, processor_time

from kubetwist.testing import SubprocessServer

#: What Python runs first in the server that counts nothing.
WITHOUT = """
from kubetwist.metrics.requests import RequestMetrics
RequestMetrics.after_authorization = lambda self, handler: handler
RequestMetrics.ended = lambda self, request, now: None
"""
OBJECTS = 500
VALUES = ("one" * 20, "two" * 20)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def requests_of(target: Target, kind: str) -> list[bytes]:
    """Return the requests that are sent repeatedly."""
    if kind == "get":
        return [target.request("GET", f"{MAPS}/cm-0007")]
    if kind in ("list500", "table500"):
        accept = TABLE if kind == "table500" else "application/json"
        return [target.request("GET", f"{MAPS}?limit=500", Accept=accept)]
    names = [f"cm-{number:04d}" for number in range(OBJECTS)]
    # Each request changes what the one before it has written there.
    if kind == "patch":
        merge = "application/merge-patch+json"
        return [
            target.request("PATCH", f"{MAPS}/{name}", {"data": {"key0": value}}, Content_Type=merge)
            for value in VALUES
            for name in names
        ]
    if kind == "apply":
        apply = "application/apply-patch+yaml"
        query = "fieldManager=bench&force=true"
        return [
            target.request(
                "PATCH",
                f"{MAPS}/{name}?{query}",
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"applied": value}},
                Content_Type=apply,
            )
            for value in VALUES
            for name in names
        ]
    return [
        target.request(
            "POST",
            MAPS,
            {"metadata": {"generateName": "made-"}, "data": {f"key{key}": "v" * 60 for key in range(10)}},
            Content_Type="application/json",
        )
    ]


@contextmanager
def nothing_counted() -> Iterator[None]:
    """Disable the metrics of requests in servers that are started from now on."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(WITHOUT)
        os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{before}" if before else folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def main() -> None:
    """Measure, and print."""
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="get,list500,table500,create,patch,apply")
    options = parser.parse_args()
    with SubprocessServer("--controllers=", *options.flag) as full:
        with nothing_counted():
            bare = SubprocessServer("--controllers=", "--enable-priority-and-fairness=false", *options.flag).start()
        try:
            targets = [Target(server.url, server.token, server.pid) for server in (full, bare)]
            for target in targets:
                fill(target)
            print(f"load average before: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
            print(f"{'':10}{'with us':>10}{'without':>10}{'speed':>8}")
            for kind in options.only.split(","):
                costs: list[list[float]] = [[], []]
                failed = 0
                for round_ in range(options.rounds + 1):
                    for target, found in zip(targets, costs, strict=True):
                        connections = 2 if "500" in kind else 8
                        assert target.pid is not None
                        # The answers to one round before the first make caches warm.
                        sent = requests_of(target, kind)
                        before = processor_time(target.pid)
                        load = send(target.url, sent, connections, options.seconds)
                        cost = (processor_time(target.pid) - before) / max(load.rate * options.seconds, 1)
                        failed += load.failed
                        if round_:
                            found.append(cost * 1e6)
                both, none = map(statistics.median, costs)
                note = f"  {failed} failed" if failed else ""
                print(f"{kind:10}{both:10.1f}{none:10.1f}{none / both:8.3f}{note}")
            print(f"load average after: {os.getloadavg()[0]:.1f}")
        finally:
            bare.stop()


if __name__ == "__main__":
    main()
