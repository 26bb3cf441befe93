"""Tests for quotas, disruption budgets, endpoints and certificate requests of a production server."""

from __future__ import annotations

import json
import ssl
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kubetwist.server.credentials.certificates import private_pem
from kubetwist.testing import SubprocessServer
from tests.e2e.test_controllers import wait_for

SPACE = "/api/v1/namespaces/default"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget"}
DEFINITION: Any = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            }
        ],
    },
}


def post(server: SubprocessServer, path: str, obj: Any) -> Any:
    """Create an object."""
    code, created = server.request("POST", path, obj)
    assert code == 201, created
    return created


def test_custom_resources(start_server: Callable[..., SubprocessServer]) -> None:
    """Quotas count custom resources, and budgets read the expected number of pods from their scale."""
    server = start_server()
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    post(server, definitions, DEFINITION)

    def established(definition: Any) -> bool:
        conditions = (definition.get("status") or {}).get("conditions") or ()
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    wait_for(server, definitions, established)
    hard = {"count/widgets.example.com": "5"}
    quotas = f"{SPACE}/resourcequotas"

    def used(amount: str) -> Callable[[Any], bool]:
        return lambda quota: (quota.get("status") or {}).get("used") == {"count/widgets.example.com": amount}

    owner = post(server, WIDGETS, {**WIDGET, "metadata": {"name": "one"}, "spec": {"size": 4}})
    post(server, quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    wait_for(server, quotas, used("1"))
    post(server, WIDGETS, {**WIDGET, "metadata": {"name": "two"}})
    wait_for(server, quotas, used("2"))
    assert server.request("DELETE", f"{WIDGETS}/two")[0] == 200
    wait_for(server, quotas, used("1"))

    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "web"}}
    post(server, budgets, {"metadata": {"name": "b"}, "spec": {"maxUnavailable": "25%", "selector": selector}})
    wait_for(server, f"{SPACE}/serviceaccounts", lambda account: account["metadata"]["name"] == "default")
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "one", "controller": True}
    meta = {
        "name": "p",
        "labels": {"app": "web"},
        "ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}],
    }
    post(server, f"{SPACE}/pods", {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    budget = wait_for(server, budgets, lambda one: (one.get("status") or {}).get("expectedPods") == 4)
    assert budget["status"]["desiredHealthy"] == 3
    assert server.stop() == 0
    assert "Traceback" not in server.output(), server.output()


def test_addresses(start_server: Callable[..., SubprocessServer]) -> None:
    """The address of a pod is added to the endpoints and the slice of its service."""
    server = start_server()
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    post(server, f"{SPACE}/services", {"metadata": {"name": "web"}, "spec": spec})
    post(server, "/api/v1/nodes", {"metadata": {"name": "n1"}})
    wait_for(server, f"{SPACE}/serviceaccounts", lambda account: account["metadata"]["name"] == "default")
    pod = {
        "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }
    pod = post(server, f"{SPACE}/pods", pod)
    pod["status"] = {
        "phase": "Running",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    assert server.request("PUT", f"{SPACE}/pods/p/status", pod)[0] == 200
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    wait_for(server, slices, lambda one: [end["addresses"] for end in one["endpoints"] or ()] == [["10.1.0.1"]])
    wait_for(
        server,
        f"{SPACE}/endpoints",
        lambda one: one["metadata"]["name"] == "web" and "10.1.0.1" in json.dumps(one.get("subsets")),
    )
    assert server.stop() == 0
    assert "Traceback" not in server.output(), server.output()


def test_certificate(start_server: Callable[..., SubprocessServer], tmp_path: Path) -> None:
    """A client authenticates with the certificate of an approved request."""
    server = start_server()
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, "jane"), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "dev")]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    pem = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    spec = {
        "request": b64encode(pem).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    created = post(server, requests, {"metadata": {"name": "jane"}, "spec": spec})
    created["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test", "message": ""}]}
    assert server.request("PUT", f"{requests}/jane/approval", created)[0] == 200
    found = wait_for(server, requests, lambda one: bool((one.get("status") or {}).get("certificate")))
    chain = tmp_path / "jane.pem"
    chain.write_bytes(b64decode(found["status"]["certificate"]) + private_pem(key))
    context: ssl.SSLContext = server.connection.ssl_context()
    context.load_cert_chain(chain)
    request = urllib.request.Request(f"{server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews", b"{}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, context=context) as answer:
        user = json.load(answer)["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("jane", ["dev", "system:authenticated"])
    assert server.stop() == 0
    assert "Traceback" not in server.output(), server.output()
