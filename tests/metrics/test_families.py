"""
Tests that the served metrics equal F{families.csv}, and that this table agrees with kube-apiserver.

The table has the facts of each family: its type, its labels and the bounds of its buckets. F{reference.txt} has the
families that a fresh kube-apiserver serves.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase

from tests.checkout import CHECKOUT
from tests.metrics.servercase import MetricsTestCase

TABLE: Final = Path(__file__).with_name("families.csv")
PAGE: Final = CHECKOUT / "docs" / "metrics.md"
#: Prefixes of the metrics of prometheus_client.
OF_LIBRARY: Final = ("process_", "python_")
_SAMPLE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_PARTS: Final = re.compile("_(?:bucket|sum|count)$")


class FamilyFacts(NamedTuple):
    """What is fixed about a family."""

    #: C{"counter"}, C{"gauge"}, C{"histogram"} or C{"summary"}.
    metric_type: str
    #: Names of the labels, without C{le} and C{quantile}, sorted.
    labels: tuple[str, ...]
    #: Upper bounds of the buckets, as they are written; without C{+Inf}.
    buckets: tuple[str, ...]


def read_table() -> dict[str, FamilyFacts]:
    """Return the facts of all families, by name."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    facts = {
        row["name"]: FamilyFacts(row["type"], tuple(row["labels"].split()), tuple(row["buckets"].split()))
        for row in rows
    }
    assert len(facts) == len(rows), "a name is repeated"
    return facts


def always_served() -> set[str]:
    """Return the families that a fresh server with the default flags serves."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["name"] for row in csv.DictReader(file) if row["served"] == "always"}


def parse_families(text: str) -> dict[str, FamilyFacts]:
    """Return the facts of the families in Prometheus' text format, by name."""
    types = {line.split()[2]: line.split()[3] for line in text.splitlines() if line.startswith("# TYPE ")}
    labels: dict[str, set[str]] = {name: set() for name in types}
    buckets: dict[str, list[str]] = {name: [] for name in types}
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if match is None:
            continue
        name = match[1] if match[1] in types else _PARTS.sub("", match[1])
        found = dict(_LABEL.findall(match[2] or ""))
        bound = found.pop("le", "+Inf")
        if bound != "+Inf" and bound not in buckets[name]:
            buckets[name].append(bound)
        if types[name] == "summary":
            found.pop("quantile", None)
        labels[name].update(found)
    return {name: FamilyFacts(kind, tuple(sorted(labels[name])), tuple(buckets[name])) for name, kind in types.items()}


def differences(served: Mapping[str, FamilyFacts], table: Mapping[str, FamilyFacts]) -> list[str]:
    """Return the served families that are missing from the table, or differ from it."""
    return [
        f"{name}: {facts}, expected {table.get(name)}"
        for name, facts in served.items()
        if not name.startswith(OF_LIBRARY) and table.get(name) != facts
    ]


def explained_rows() -> list[str]:
    """Return the first cells of the page's table of missing metrics."""
    section = PAGE.read_text("utf-8").partition("## Missing metrics")[2]
    return [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]


class TableTests(SynchronousTestCase):
    """The table, and the facts of kube-apiserver."""

    def test_as_reference(self) -> None:
        """
        Each family of a fresh kube-apiserver is in the table, with its type and labels, or the page has the reason for
        its absence.
        """
        table = read_table()
        reasons = "".join(explained_rows())
        wrong = []
        for line in TABLE.with_name("reference.txt").read_text("utf-8").splitlines():
            name, kind, *labels = line.removeprefix("* ").split()
            facts = table.get(name)
            if facts is None:
                if f"`{name}`" not in reasons:
                    wrong.append(f"{name} is neither served nor explained")
            elif facts[:2] != (kind, tuple(sorted(set(labels) - ({"quantile"} if kind == "summary" else set())))):
                wrong.append(f"{name}: {facts}, expected {kind} {labels}")
        self.assertEqual(wrong, [])

    def test_explained(self) -> None:
        """A family whose absence is explained is not served."""
        names = {name for row in explained_rows() for name in re.findall(r"`([a-z0-9_]+)`", row)}
        self.assertEqual(names & read_table().keys(), set())

    def test_buckets(self) -> None:
        """Exactly the histograms have buckets, in ascending order."""
        for name, facts in read_table().items():
            bounds = [float(bound) for bound in facts.buckets]
            self.assertEqual(bool(bounds), facts.metric_type == "histogram", name)
            self.assertEqual(bounds, sorted(set(bounds)), name)

    def test_sorted(self) -> None:
        """The table is sorted by name."""
        names = list(read_table())
        self.assertEqual(names, sorted(names))


class ServedTests(MetricsTestCase):
    """A server."""

    arguments = ("--controllers=", "--storage-backend=sqlite")

    async def test_served(self) -> None:
        """A fresh server serves the families that are always served; all have the type, labels and buckets."""
        await self.ask("GET", "/api")
        code, text = await self.ask("GET", "/metrics")
        self.assertEqual(code, 200)
        fresh = parse_families(text)
        # Controllers are disabled here, and the sampler of priority levels has not run yet.
        later = ("workqueue_", "apiserver_flowcontrol_", "kubetwist_reactor_")
        missing = {name for name in always_served() - fresh.keys() if not name.startswith(later)}
        self.assertEqual(missing, set())
        path = "/api/v1/namespaces/default/configmaps"
        await self.ask("POST", path, {"metadata": {"name": "a"}})
        await self.ask("PATCH", f"{path}/a", {"data": {"a": "b"}}, content_type="application/merge-patch+json")
        await self.ask("GET", f"{path}?limit=1")
        connection = self.server.connection
        watch = f"{path}?watch=true&timeoutSeconds=1&resourceVersion=0"
        await deferToThread(connection.request, "GET", watch)
        for name in ("/metrics", "/metrics/slis"):
            _, text = await self.ask("GET", name)
            self.assertEqual(differences(parse_families(text), read_table()), [])
