"""
Measure the cost of the audit: GETs and creations of a ConfigMap per second, 8 connections, without audit and at each
level.

The last column is the CPU time per audit event (two for each request), of all threads of the server.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from load import Load, Target, arguments, send

from kubetwist.testing import SubprocessServer

PATH = "/api/v1/namespaces/default/configmaps"
MODES = ("off", "batch", "blocking", "blocking-strict")


def cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(target: Target, seconds: float) -> dict[str, tuple[Load, float]]:
    """Return the rates, and the CPU time per request in microseconds."""
    data = {f"key{key}": "v" * 60 for key in range(10)}
    target.call("POST", PATH, {"metadata": {"name": "one"}, "data": data})
    get = [target.request("GET", f"{PATH}/one", Accept="application/json")]
    posts = [
        target.request(
            "POST", PATH, {"metadata": {"name": f"n{number}"}, "data": data}, Content_Type="application/json"
        )
        for number in range(round(seconds * 6000))
    ]
    found = {}
    assert target.pid is not None
    for name, requests in (("get", get), ("create", posts)):
        began = cpu(target.pid)
        load = send(target.url, requests, 8, seconds)
        found[name] = load, (cpu(target.pid) - began) / (load.rate * seconds) * 1e6
    return found


def main() -> None:
    """Measure and print."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--level", default="Metadata")
    options: argparse.Namespace = parser.parse_args()
    plain: dict[str, float] = {}
    print(f"{'mode':16} {'':8} {'rate/s':>8} {'p99 ms':>8} {'us/event':>9}")
    for mode in MODES:
        with tempfile.TemporaryDirectory() as parent:
            policy, log = Path(parent, "policy.yaml"), Path(parent, "audit.log")
            policy.write_text(f"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{{level: {options.level}}}]\n")
            flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}", f"--audit-log-mode={mode}"]
            with SubprocessServer(*options.flag, *(() if mode == "off" else flags)) as server:
                found = measure(Target(server.url, server.token, server.pid), options.seconds)
            for name, (load, spent) in found.items():
                before = plain.setdefault(name, spent)
                extra = "" if mode == "off" else f"{(spent - before) / 2:9.0f}"
                print(f"{mode:16} {name:8} {load.rate:8.0f} {load.p99:8.1f} {extra}", flush=True)


if __name__ == "__main__":
    main()
