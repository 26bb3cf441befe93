"""Runs Prometheus beside a server, and reads rules, dashboards and the table of metrics."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from kubetwist.testing import SubprocessServer

from ..pages import DOCS as DOCS

DEPLOY: Final = DOCS.parent / "deploy"
RULES: Final = sorted((DEPLOY / "prometheus").glob("*.rules.yaml"))
RULE_TESTS: Final = sorted((DEPLOY / "prometheus" / "tests").glob("*.yaml"))
DASHBOARDS: Final = sorted((DEPLOY / "grafana").glob("*.json"))
FAMILIES: Final = Path(__file__).parents[2] / "metrics" / "families.csv"
PROMTOOL: Final = shutil.which("promtool")
PROMETHEUS: Final = shutil.which("prometheus")
#: Seconds until Prometheus listens, has scraped the server, and has evaluated its rules.
PATIENCE: Final = 60.0

_LISTENING: Final = re.compile(r'msg="Listening on" address=(127\.0\.0\.1:\d+)')
_WORD: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT: Final = re.compile(r"#[^\n]*")
_SELECTOR: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?")
#: Labels that Prometheus adds, or that are added when several clusters are combined.
TARGET_LABELS: Final = frozenset(("job", "instance", "cluster", "namespace", "service", "endpoint"))
#: The label that a server with several processes adds to the metrics of a process.
_PROCESS_LABELS: Final = frozenset(("worker",))


def skip_reason() -> str:
    """Return why there is no Prometheus here; C{""} if there is one."""
    missing = [name for name, path in (("promtool", PROMTOOL), ("prometheus", PROMETHEUS)) if path is None]
    return f"{' and '.join(missing)} not on PATH: apt-get install prometheus" if missing else ""


def rules() -> Iterator[Mapping[str, Any]]:
    """Return all recording rules and alerts."""
    for path in RULES:
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]:
            yield from group["rules"]


def panels() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return all panels of all dashboards, without rows, with the name of the file."""
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            if panel["type"] != "row":
                yield path.name, panel


def with_variables(expression: str) -> str:
    """Return an expression of a dashboard with values of its variables."""
    replaced = expression.replace("$__rate_interval", "5m").replace("$job", "kube-apiserver")
    return replaced.replace("$instance", ".*")


def labels_by_metric() -> dict[str, frozenset[str]]:
    """Return the labels of each metric that a server has, by the name of the series."""
    found: dict[str, frozenset[str]] = {"up": frozenset()}
    with FAMILIES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name, labels = row["name"], frozenset(row["labels"].split())
            if row["type"] == "histogram":
                found[f"{name}_bucket"] = labels | {"le"}
            if row["type"] in ("histogram", "summary"):
                found[f"{name}_sum"] = found[f"{name}_count"] = labels
            if row["type"] != "histogram":
                found[name] = labels
    for name in ("cpu_seconds_total", "max_fds", "open_fds", "resident_memory_bytes", "start_time_seconds"):
        found[f"process_{name}"] = _PROCESS_LABELS
    for line in (DOCS / "backup.md").read_text("utf-8").splitlines():
        # The metrics of backups are in a file for node_exporter.
        if line.startswith("| `kubetwist_backup_"):
            found.update((name, frozenset[str]()) for name in re.findall(r"`(kubetwist_\w+)`", line))
    for rule in rules():
        if "record" in rule:
            found[rule["record"]] = frozenset(rule.get("labels", ())) | recorded_labels(rule["expr"])
    return found


def recorded_labels(expression: str) -> frozenset[str]:
    """Return the labels by which an expression groups: the labels of the recorded series."""
    groups = re.findall(r"\bby\s*\(([^)]*)\)", expression)
    return frozenset(name.strip() for group in groups for name in group.split(",") if name.strip()) - {"le"}


def selectors(expression: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Return the metrics that an expression selects, each with the labels of its selector."""
    bare = _COMMENT.sub("", _STRING.sub('""', expression))
    bare = re.sub(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    for match in _SELECTOR.finditer(bare):
        name, labels = match[1], match[2]
        # Functions, operators and durations are no metrics.
        if labels is not None or "_" in name or ":" in name:
            following = bare[match.end() :].lstrip()
            if not following.startswith("(") and not bare[: match.start()].rstrip().endswith("["):
                yield name, frozenset(_WORD.findall(re.sub(r'[=!~]+""', " ", labels or "")))


def unknown_names(expression: str, known: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the metrics and labels of an expression that no server has."""
    wrong = []
    for name, labels in selectors(expression):
        if name not in known:
            wrong.append(name)
        else:
            wrong += [f"{name}{{{label}}}" for label in sorted(labels - known[name] - TARGET_LABELS)]
    return wrong


def promtool(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool."""
    assert PROMTOOL is not None, "the tests are skipped without it"
    return subprocess.run([PROMTOOL, *arguments], input=given, capture_output=True, text=True, timeout=120)


class RunningPrometheus:
    """The API of a running Prometheus."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/api/v1/"

    def read(self, path: str, **query: str) -> Any:
        """Return the data of a request."""
        with urlopen(f"{self._url}{path}?{urlencode(query)}", timeout=30) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        return answer["data"]

    def evaluate(self, expression: str) -> list[Any]:
        """Return the series of an expression, as of now."""
        result: list[Any] = self.read("query", query=expression)["result"]
        return result

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Return the result of a condition as soon as it is true."""
        until = time.monotonic() + PATIENCE
        while not (result := condition()):
            assert time.monotonic() < until, "it has not become true"
            time.sleep(0.1)
        return result


@contextmanager
def running(server: SubprocessServer, folder: Path) -> Iterator[RunningPrometheus]:
    """
    Run Prometheus, which scrapes a server and evaluates the rules every second.

    @param folder: An empty directory.
    """
    connection = server.connection
    (folder / "token").write_text(connection.token)
    (folder / "ca.crt").write_text(connection.ca)
    scrape = {
        "job_name": "kube-apiserver",
        "scheme": "https",
        "authorization": {"credentials_file": str(folder / "token")},
        "tls_config": {"ca_file": str(folder / "ca.crt")},
        "static_configs": [{"targets": [connection.url.removeprefix("https://")]}],
    }
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path.absolute()) for path in RULES],
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    assert PROMETHEUS is not None, "the tests are skipped without it"
    log = folder / "prometheus.log"
    command = [
        *(PROMETHEUS, f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}"),
        *("--web.listen-address=127.0.0.1:0", "--log.format=logfmt"),
    ]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            until = time.monotonic() + PATIENCE
            while (match := _LISTENING.search(log.read_text("utf-8", "replace"))) is None:
                assert process.poll() is None and time.monotonic() < until, log.read_text("utf-8", "replace")
                time.sleep(0.05)
            yield RunningPrometheus(match[1])
        finally:
            process.terminate()
