"""Tests for overviews in the page: certificates, usage, namespaces and custom resources, in a real browser."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kubetwist.testing import SubprocessServer

from .browser import Page, make, signed_in

CORE = "/api/v1/namespaces/default"
HOSTILE = "<img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def server() -> Iterator[SubprocessServer]:
    """A server with a simulated node, on which a pod runs that uses half a core."""
    with SubprocessServer("--in-memory", "--fake-nodes=1", "--controllers=*,+workloads") as server:
        resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
        container = {"name": "busy", "image": "busy", "resources": resources}
        annotations = {"kubetwist.dev/usage-cpu": "500m", "kubetwist.dev/usage-memory": "32Mi"}
        pod = {"metadata": {"name": "busy", "annotations": annotations}, "spec": {"containers": [container]}}
        make(server, f"{CORE}/pods", pod)
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def page(browser: Any, server: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, server)


def section(page: Page, title: str) -> str:
    """Return the text of the section with this title; empty without one."""
    script = """
        const found = [...document.querySelectorAll('.section')];
        return found.find((one) => one.querySelector('h2')?.textContent.trim() === arguments[0])?.innerText || '';
    """
    return str(page.run(script, title))


def certificate(name: str, days: int) -> tuple[str, str]:
    """Return a self-signed certificate that is valid for some days, and its key, as base64."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(names).issuer_name(names).public_key(key.public_key())
    builder = builder.serial_number(4660).not_valid_before(now - timedelta(days=1))
    builder = builder.not_valid_after(now + timedelta(days=days, hours=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.example.com")]), critical=False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return base64.b64encode(pem).decode(), base64.b64encode(private).decode()


def test_certificates(page: Page, server: SubprocessServer) -> None:
    """Certificates of Secrets, ConfigMaps and webhooks are explained, with a warning before they expire."""
    crt, key = certificate(HOSTILE, 12)
    secret = {"metadata": {"name": "shop"}, "type": "kubernetes.io/tls", "data": {"tls.crt": crt, "tls.key": key}}
    make(server, f"{CORE}/secrets", secret)
    page.open("#/object/-/secrets/default/shop")
    page.until(lambda: "12 days left" in section(page, "Certificate: tls.crt"))
    text = section(page, "Certificate: tls.crt")
    escaped = HOSTILE.replace("<", "\\<").replace(">", "\\>")
    for part in (f"CN={escaped}", "DNS:shop.example.com", "itself", "ECDSA P-256", "1234"):
        assert part in text
    assert page.run("return window.hacked") is None
    assert page.all(".section .waiting")
    page.picture("certificate")
    page.open("#/object/-/configmaps/default/kube-root-ca.crt")
    page.until(lambda: "authority" in section(page, "Certificate: ca.crt"))
    client = {"service": {"namespace": "default", "name": "hook"}, "caBundle": crt}
    hook = {"name": "a.example.com", "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    make(server, hooks, {"metadata": {"name": "hooks"}, "webhooks": [hook]})
    page.open("#/object/admissionregistration.k8s.io/validatingwebhookconfigurations/-/hooks")
    page.until(lambda: "12 days left" in section(page, "Certificate: webhooks[0].clientConfig.caBundle"))


def test_signing_request(page: Page, server: SubprocessServer) -> None:
    """A signing request has what it requests and, once it is approved, the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    request = base64.b64encode(pem.public_bytes(Encoding.PEM)).decode()
    signer = "kubernetes.io/kube-apiserver-client"
    spec = {"request": request, "signerName": signer, "usages": ["client auth"]}
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    make(server, path, {"metadata": {"name": "jane"}, "spec": spec})
    page.open("#/object/certificates.k8s.io/certificatesigningrequests/-/jane")
    page.until(lambda: "CN=jane" in section(page, "Request"))
    assert "pending" in section(page, "Status")
    page.find("#action-approve").click()
    page.until(lambda: page.find("#run").is_enabled())
    page.find("#run").click()
    page.until(lambda: "days left" in section(page, "Issued certificate"))
    assert "client auth" in section(page, "Issued certificate")


def test_usage(page: Page, server: SubprocessServer) -> None:
    """A pod and its node have their usage beside requests and limits."""
    page.until(lambda: server.request("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/busy")[0] == 200)
    page.open("#/object/-/pods/default/busy")
    page.until(lambda: "used" in section(page, "Usage"))
    text = section(page, "Usage")
    assert "used 500m · requested 250m · limit 1" in text
    assert "used 32 MiB · requested 64 MiB · limit 128 MiB" in text
    assert len(page.all("svg.usage")) == 2
    page.picture("usage")
    page.open("#/object/-/nodes/-/pretend-node-0")
    page.until(lambda: "used 500m · requested 250m" in section(page, "Usage"))
    assert "used 1 · limit 110" in section(page, "Usage")


def test_events(page: Page, server: SubprocessServer) -> None:
    """The newest events about an object are in its overview as they happen, and link to all of them."""
    page.open("#/object/-/pods/default/busy")
    page.until(lambda: "Scheduled" in section(page, "Events"))
    uid = server.request("GET", f"{CORE}/pods/busy")[1]["metadata"]["uid"]
    about = {"kind": "Pod", "namespace": "default", "name": "busy", "uid": uid}
    event = {"metadata": {"name": "odd"}, "involvedObject": about, "type": HOSTILE, "reason": HOSTILE}
    make(server, f"{CORE}/events", event | {"message": HOSTILE, "lastTimestamp": "2099-01-01T00:00:00Z"})
    page.until(lambda: HOSTILE in section(page, "Events"))
    assert page.run("return window.hacked") is None
    page.find("#recent-events a").click()
    page.until(lambda: page.run("return location.hash") == "#/object/-/pods/default/busy/events")


def test_namespace(page: Page, server: SubprocessServer) -> None:
    """A namespace has the counts of its objects, its quotas and limit ranges."""
    make(server, "/api/v1/namespaces", {"metadata": {"name": "team"}})
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "4", "requests.cpu": "2"}}}
    make(server, "/api/v1/namespaces/team/resourcequotas", quota)
    limit = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}
    make(server, "/api/v1/namespaces/team/limitranges", {"metadata": {"name": "r"}, "spec": {"limits": [limit]}})
    for name in "ab":
        make(server, "/api/v1/namespaces/team/configmaps", {"metadata": {"name": name}})

    def used() -> Any:
        return server.request("GET", "/api/v1/namespaces/team/resourcequotas/q")[1]["status"].get("used", {})

    page.until(lambda: used().get("configmaps") == "3")  # with kube-root-ca.crt
    page.open("#/object/-/namespaces/-/team")
    page.until(lambda: "used 3 · limit 4" in section(page, "Quotas"))
    assert "100m" in section(page, "Limit ranges")
    page.until(lambda: "3\nconfigmaps" in section(page, "Contents"))
    page.picture("namespace")


def test_custom_resource(page: Page, server: SubprocessServer) -> None:
    """A custom resource has its printed columns, and its fields in the order of the schema with their descriptions."""
    size = {"type": "integer", "title": "Size", "description": f"Length in metres. {HOSTILE}"}
    spec = {"type": "object", "properties": {"captain": {"type": "string"}, "size": size}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    column = {"name": "Metres", "type": "integer", "jsonPath": ".spec.size", "description": "How long it is."}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "additionalPrinterColumns": [column]}
    names = {"plural": "boats", "singular": "boat", "kind": "Boat"}
    definition = {
        "metadata": {"name": "boats.x.example.com"},
        "spec": {"group": "x.example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    make(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    boats = "/apis/x.example.com/v1/namespaces/default/boats"
    page.until(lambda: server.request("GET", boats)[0] == 200)
    boat = {"apiVersion": "x.example.com/v1", "kind": "Boat", "metadata": {"name": "b"}}
    make(server, boats, boat | {"spec": {"size": 7, "captain": HOSTILE}})
    page.open("#/object/x.example.com/boats/default/b")
    page.until(lambda: "Metres\n7" in section(page, "Summary"))
    page.until(lambda: page.all("dt.explained"))
    title = "return [...document.querySelectorAll('dt.explained')].map((one) => [one.textContent, one.title])"
    page.until(lambda: ["Metres", "How long it is."] in page.run(title))
    page.until(lambda: ["size", f"Size: Length in metres. {HOSTILE}"] in page.run(title))
    assert HOSTILE in section(page, "Specification")
    assert page.run("return window.hacked") is None
    patch = {"spec": {"size": 8}}
    server.request("PATCH", f"{boats}/b", patch, content_type="application/merge-patch+json")
    page.until(lambda: "Metres\n8" in section(page, "Summary"))
    page.open("#/object/apiextensions.k8s.io/customresourcedefinitions/-/boats.x.example.com")
    page.until(lambda: "1\nboats" in section(page, "Contents"))
