"""Tests of the rules, alerts and dashboards with Prometheus itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pytest

from kubetwist.testing import SubprocessServer

from .prometheus import (
    DASHBOARDS,
    DEPLOY,
    DOCS,
    RULE_TESTS,
    RULES,
    RunningPrometheus,
    labels_by_metric,
    panels,
    promtool,
    rules,
    running,
    skip_reason,
    unknown_names,
    with_variables,
)

needs_prometheus = pytest.mark.skipif(bool(skip_reason()), reason=skip_reason() or "Prometheus is there")
#: Complaints of `promtool check metrics` about names that kube-apiserver has fixed.
EXPLAINED = frozenset(
    (
        'authentication_attempts counter metrics should have "_total" suffix',
        'authenticated_user_requests counter metrics should have "_total" suffix',
        'apiserver_admission_webhook_fail_open_count counter metrics should have "_total" suffix',
        'apiserver_admission_webhook_rejection_count counter metrics should have "_total" suffix',
        "apiserver_admission_webhook_fail_open_count non-histogram and non-summary metrics should not have"
        ' "_count" suffix',
        "apiserver_admission_webhook_rejection_count non-histogram and non-summary metrics should not have"
        ' "_count" suffix',
        'authentication_token_cache_active_fetch_count non-histogram and non-summary metrics should not have "_count"'
        " suffix",
        "apiserver_admission_step_admission_duration_seconds_summary metric name should not include type 'summary'",
    )
)


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SubprocessServer, RunningPrometheus]]:
    """A server with audit and controllers that was used, and Prometheus, which scrapes it."""
    folder = tmp_path_factory.mktemp("prometheus")
    policy = folder / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}")
    with SubprocessServer(*flags) as server, running(server, folder) as prometheus:
        path = "/api/v1/namespaces/default/configmaps"
        for name in ("a", "b"):
            assert server.request("POST", path, {"metadata": {"name": name}})[0] == 201
        assert server.request("GET", path)[0] == 200
        assert server.request("GET", f"{path}/none")[0] == 404
        yield server, prometheus


@needs_prometheus
def test_rules_are_valid() -> None:
    """promtool accepts all rules."""
    assert RULES
    done = promtool("check", "rules", *map(str, RULES))
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_unit_tests() -> None:
    """The unit tests of the rules pass, and each alert is in one of them."""
    done = promtool("test", "rules", *map(str, RULE_TESTS))
    assert done.returncode == 0, done.stdout + done.stderr
    text = "".join(path.read_text("utf-8") for path in RULE_TESTS)
    assert [rule["alert"] for rule in rules() if "alert" in rule and f'alertname="{rule["alert"]}"' not in text] == []


def test_names_in_rules() -> None:
    """The rules select metrics and labels that servers have."""
    known = labels_by_metric()
    wrong = {rule.get("record") or rule["alert"]: unknown_names(rule["expr"], known) for rule in rules()}
    assert {name: names for name, names in wrong.items() if names} == {}


def test_alerts_are_documented() -> None:
    """Each alert has a severity, a summary, a description and the link to its runbook, and is in the page."""
    page = (DOCS / "monitoring.md").read_text("utf-8")
    alerts = [rule for rule in rules() if "alert" in rule]
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert {rule["alert"] for rule in alerts} == documented
    for rule in alerts:
        assert rule["labels"]["severity"] in ("warning", "critical"), rule
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}, rule
        assert rule["annotations"]["runbook_url"] == f"runbooks.md#{rule['alert'].lower()}"


@needs_prometheus
def test_evaluation(scraped: tuple[SubprocessServer, RunningPrometheus]) -> None:
    """Prometheus scrapes the server, and evaluates each rule without an error; no alert fires for a healthy server."""
    _, prometheus = scraped

    def all_evaluated() -> bool:
        health = [target["health"] for target in prometheus.read("targets")["activeTargets"]]
        groups = prometheus.read("rules")["groups"]
        evaluated = all(rule["health"] != "unknown" for group in groups for rule in group["rules"])
        return health == ["up"] and bool(groups) and evaluated

    prometheus.wait(all_evaluated)
    # Rates need two scrapes.
    prometheus.wait(lambda: prometheus.evaluate('count_over_time(up{job="kube-apiserver"}[1m]) > 2'))
    loaded = [rule for group in prometheus.read("rules")["groups"] for rule in group["rules"]]
    assert len(loaded) == len(list(rules()))
    assert [(rule["name"], rule.get("lastError")) for rule in loaded if rule["health"] != "ok"] == []
    for name in ("instance:kubetwist_reactor_delay_seconds:p99_5m", "apiserver_request:burnrate5m"):
        assert prometheus.wait(partial(prometheus.evaluate, name)), name
    assert prometheus.evaluate('ALERTS{alertstate="firing"}') == []


@needs_prometheus
def test_served_metrics(scraped: tuple[SubprocessServer, RunningPrometheus]) -> None:
    """promtool accepts /metrics, except for names that kube-apiserver has fixed."""
    server, _ = scraped
    code, text = server.request("GET", "/metrics")
    assert code == 200 and isinstance(text, str)
    done = promtool("check", "metrics", given=text)
    assert set(done.stderr.splitlines()) - EXPLAINED == set(), done.stderr


@needs_prometheus
def test_dashboard_expressions(scraped: tuple[SubprocessServer, RunningPrometheus]) -> None:
    """Prometheus evaluates each expression of the dashboards; those about requests have values."""
    _, prometheus = scraped
    prometheus.wait(lambda: prometheus.evaluate('count_over_time(up{job="kube-apiserver"}[1m]) > 2'))
    empty = []
    for _, panel in panels():
        results = [prometheus.evaluate(with_variables(target["expr"])) for target in panel["targets"]]
        if not any(results):
            empty.append(panel["title"])
    for title in ("Requests by verb", "Latency by verb", "Storage requests", "Delay of the reactor", "Audit events"):
        assert title not in empty


def test_dashboards() -> None:
    """
    Panels have distinct ids, a unit, a description and the variable of the data source, and do not overlap; their
    expressions select metrics and labels that servers have.
    """
    assert DASHBOARDS and DASHBOARDS[0].is_relative_to(DEPLOY)
    known = labels_by_metric()
    ids: set[tuple[str, int]] = set()
    places: set[tuple[str, int, int]] = set()
    for name, panel in panels():
        assert (name, panel["id"]) not in ids, panel["id"]
        ids.add((name, panel["id"]))
        place = panel["gridPos"]
        assert place["w"] > 0 and place["h"] > 0 and place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (name, x, y) not in places, panel["title"]
                places.add((name, x, y))
        assert panel["title"] and panel["description"], panel["id"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        source = {"type": "prometheus", "uid": "${datasource}"}
        assert panel["datasource"] == source, panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert references and len(references) == len(set(references)), panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == source, panel["title"]
            assert unknown_names(with_variables(target["expr"]), known) == [], panel["title"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('rate(up{job="a"}[5m])', []),
        ("sum by (nowhere) (up)", []),
        ('apiserver_request_total{verb="GET",nothing="x"}', ["apiserver_request_total{nothing}"]),
        ("rate(apiserver_requests_total[5m])", ["apiserver_requests_total"]),
        ("histogram_quantile(0.9, apiserver_request_duration_seconds)", ["apiserver_request_duration_seconds"]),
        ("# a comment_with_words\nup", []),
    ],
)
def test_unknown_names(expression: str, expected: list[str]) -> None:
    """Names that no server has are found in an expression."""
    assert unknown_names(expression, labels_by_metric()) == expected
