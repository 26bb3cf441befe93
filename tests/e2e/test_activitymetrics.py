"""Tests for the metrics of a server with workers after requests of many kinds: all are served, with their values."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubetwist.testing import SubprocessServer

from ..metrics.test_families import always_served, differences, parse_families, read_table
from .test_workers import Client, connected

NAMESPACE = "/api/v1/namespaces/measured"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
#: Families that are served after the requests of this module.
USED = """
apiserver_admission_webhook_admission_duration_seconds apiserver_admission_webhook_fail_open_count
apiserver_admission_webhook_rejection_count apiserver_admission_webhook_request_total apiserver_audit_error_total
apiserver_audit_level_total apiserver_authorization_decisions_total apiserver_flowcontrol_request_execution_seconds
apiserver_impersonation_attempts_total apiserver_longrunning_requests apiserver_request_body_size_bytes
apiserver_request_duration_seconds apiserver_request_sli_duration_seconds apiserver_request_total
apiserver_requested_deprecated_apis apiserver_response_sizes apiserver_storage_transformation_operations_total
apiserver_validating_admission_policy_check_total apiserver_watch_events_sizes apiserver_watch_events_total
authenticated_user_requests kubetwist_workers kubetwist_workers_ready pod_security_evaluations_total
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SubprocessServer]:
    """A server with two fronts, controllers, an audit log and a webhook for it that does not answer, and encryption."""
    folder = tmp_path_factory.mktemp("measured")
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    unreachable = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1/"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    keys = [{"name": "one", "secret": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}]
    encryption = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"aesgcm": {"keys": keys}}, {"identity": {}}]}],
    }
    paths: dict[str, Path] = {}
    for name, content in (("policy", policy), ("unreachable", unreachable), ("encryption", encryption)):
        paths[name] = folder / f"{name}.yaml"
        paths[name].write_text(json.dumps(content))
    flags = (
        *("--workers=2", "--storage-backend=sqlite", "--controllers=*,+workloads", "--fake-nodes=1"),
        *(f"--audit-policy-file={paths['policy']}", f"--audit-log-path={folder}/audit.log"),
        *(f"--audit-webhook-config-file={paths['unreachable']}", "--audit-webhook-initial-backoff=10ms"),
        f"--encryption-provider-config={paths['encryption']}",
    )
    with SubprocessServer(*flags, timeout=120) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


def scrape(client: Client) -> str:
    """Return the text of the metrics."""
    code, text = client.ask("GET", "/metrics")
    assert code == 200
    return str(text)


def total(client: Client, series: str, /, **labels: str) -> float:
    """Return the sum of the samples with a name and labels; the other labels may have any value."""
    families = text_string_to_metric_families(scrape(client))
    # The parser appends this to the names of counters.
    names = (series, f"{series}_total")
    samples = [sample for family in families for sample in family.samples if sample.name in names]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition: queues and counters of other processes follow a little later."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def webhook(name: str, policy: str) -> dict[str, Any]:
    """Return a configuration of a webhook that does not answer."""
    hook = {
        "name": f"{name}.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]},
        ],
        "objectSelector": {"matchLabels": {"call": name}},
        "failurePolicy": policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": name}, "webhooks": [hook]}


def test_queues(server: SubprocessServer) -> None:
    """The queues of controllers count their work, of one process only, and all fronts return it."""
    with connected(server) as (first, second):
        assert first.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "worked"}})[0] == 201
        queue = {"name": "namespace-controller"}
        before = total(second, "workqueue_adds_total", **queue)
        assert first.ask("DELETE", "/api/v1/namespaces/worked")[0] == 200
        until(lambda: second.ask("GET", "/api/v1/namespaces/worked")[0] == 404)
        for client in (first, second):
            until(lambda client=client: total(client, "workqueue_adds_total", **queue) > before)
            until(lambda client=client: total(client, "workqueue_depth", **queue) == 0)
            until(lambda client=client: total(client, "workqueue_unfinished_work_seconds", **queue) == 0)
            done = total(client, "workqueue_work_duration_seconds_count", **queue)
            assert done >= 1
            assert total(client, "workqueue_queue_duration_seconds_count", **queue) >= done
            assert total(client, "workqueue_longest_running_processor_seconds", **queue) == 0
            assert "workqueue_retries_total" in scrape(client)


def test_audit(server: SubprocessServer) -> None:
    """Events of both fronts are counted, by level; events that a webhook did not accept are errors."""
    with connected(server) as (first, second):
        before = {name: total(first, name) for name in ("apiserver_audit_event_total", "apiserver_audit_level_total")}
        for client in (first, second):
            for _ in range(5):
                assert client.ask("GET", "/api/v1/namespaces/default")[0] == 200
        # Each request has two events, and those that ask for the metrics are requests, too.
        until(lambda: total(second, "apiserver_audit_event_total") >= before["apiserver_audit_event_total"] + 10)
        assert total(second, "apiserver_audit_level_total", level="Metadata") >= (
            before["apiserver_audit_level_total"] + 10
        )
        assert total(second, "apiserver_audit_requests_rejected_total") == 0
        until(lambda: total(first, "apiserver_audit_error_total", plugin="webhook") > 0)


def test_families(server: SubprocessServer) -> None:
    """
    All families of the table that are always served are served, and so are those that these requests use.

    All have the types, labels and buckets of kube-apiserver.
    """
    with connected(server) as clients:
        use(clients[0])
        with_watch = clients[1].respond("GET", f"{NAMESPACE}/configmaps?watch=1&resourceVersion=0")
        with_watch.readline()
        needed = {*always_served(), *USED.split()}
        with connected(server) as (first, second):
            for client in (first, second):
                until(lambda client=client: not needed - parse_families(scrape(client)).keys())
                assert differences(parse_families(scrape(client)), read_table()) == []
            hooks = {"name": "fails.example.com", "error_type": "calling_webhook_error"}
            assert total(first, "apiserver_admission_webhook_rejection_count", **hooks) == 1
            assert total(first, "apiserver_admission_webhook_fail_open_count", name="ignored.example.com") == 1
            assert total(first, "apiserver_longrunning_requests", verb="WATCH", resource="configmaps") >= 1
            assert total(second, "kubetwist_workers_ready") == total(second, "kubetwist_workers") == 2
            checks = {"policy": "measured", "enforcement_action": "deny"}
            assert total(second, "apiserver_validating_admission_policy_check_total", **checks) >= 1
            denied = {"decision": "deny", "policy_level": "restricted", "mode": "enforce"}
            assert total(second, "pod_security_evaluations_total", **denied) == 1


def use(client: Client) -> None:
    """Send requests that use many features."""

    def create(path: str, body: Any, expected: int = 201, **headers: str) -> None:
        code, answer = client.ask("POST", path, body, **headers)
        assert code == expected, answer

    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    create("/api/v1/namespaces", {"metadata": {"name": "measured", "labels": labels}})
    create(f"{NAMESPACE}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    until(lambda: client.ask("GET", f"{NAMESPACE}/serviceaccounts/default")[0] == 200)
    create(f"{NAMESPACE}/pods", pod, 403)
    create(f"{NAMESPACE}/configmaps", {"metadata": {"name": "i"}}, 403, Impersonate_User="alice")
    client.ask("GET", "/api/v1/componentstatuses")
    create(WEBHOOKS, webhook("fails", "Fail"))
    create(WEBHOOKS, webhook("ignored", "Ignore"))
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.metadata.name != 'no'"}],
    }
    create(POLICIES, {"metadata": {"name": "measured"}, "spec": spec})
    binding = {"policyName": "measured", "validationActions": ["Deny"]}
    create(BINDINGS, {"metadata": {"name": "measured"}, "spec": binding})
    # Configurations are used a little later.
    until(lambda: client.ask("POST", f"{NAMESPACE}/configmaps?dryRun=All", {"metadata": {"name": "no"}})[0] == 422)
    create(f"{NAMESPACE}/configmaps", {"metadata": {"name": "a", "labels": {"call": "fails"}}}, 500)
    create(f"{NAMESPACE}/configmaps", {"metadata": {"name": "b", "labels": {"call": "ignored"}}})
