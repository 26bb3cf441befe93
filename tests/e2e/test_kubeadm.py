"""Tests for the kube-apiserver command lines of kubeadm and of other distributions."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, TLSFiles, etcd_skip_reason

from .test_etcd import eventually

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")

_BOTH = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


class Authority:
    """One of the three authorities that kubeadm creates; keys are RSA, in PKCS #1 PEM."""

    def __init__(self, pki: Path, name: str) -> None:
        self._pki = pki
        self._key = _key()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name.replace("/", "-"))])
        self._write(name, self._signed(self._name, self._key, (), ca=True), self._key)

    def issue(self, path: str, common_name: str, organization: str = "", *names: str) -> None:
        """Write a certificate and its key to files."""
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if organization:
            parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        key = _key()
        self._write(path, self._signed(x509.Name(parts), key, names), key)

    def _signed(self, subject: x509.Name, key: Any, names: tuple[str, ...], *, ca: bool = False) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if not ca:
            builder = builder.add_extension(x509.ExtendedKeyUsage(_BOTH), critical=False)
        if names:
            shown = [x509.IPAddress(ip_address(one)) if one[0].isdigit() else x509.DNSName(one) for one in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(shown), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, path: str, certificate: x509.Certificate, key: Any) -> None:
        target = self._pki / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_name(f"{target.name}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        target.with_name(f"{target.name}.key").write_bytes(pem)


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the files of kubeadm's /etc/kubernetes/pki."""
    pki = tmp_path_factory.mktemp("pki")
    cluster, proxies, etcd = (Authority(pki, name) for name in ("ca", "front-proxy-ca", "etcd/ca"))
    cluster.issue("apiserver", "kube-apiserver", "", "kubernetes.default.svc", "localhost", "127.0.0.1")
    cluster.issue("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "kubeadm:cluster-admins")
    cluster.issue("super-admin", "kubernetes-super-admin", "system:masters")
    proxies.issue("front-proxy-client", "front-proxy-client")
    etcd.issue("etcd/server", "m", "", "localhost", "127.0.0.1")
    etcd.issue("apiserver-etcd-client", "kube-apiserver-etcd-client")
    key = _key()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    (pki / "sa.key").write_bytes(pem)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (pki / "sa.pub").write_bytes(public)
    return pki


@pytest.fixture(scope="module")
def etcd(pki: Path) -> Iterator[EtcdServer]:
    """An etcd that requires client certificates."""
    with EtcdServer(tls=TLSFiles(pki / "etcd/server.crt", pki / "etcd/server.key", pki / "etcd/ca.crt")) as etcd:
        yield etcd


def kubeadm(pki: Path, etcd: EtcdServer) -> list[str]:
    """Return the flags that kubeadm passes to kube-apiserver, with a free port."""
    return [
        "--advertise-address=127.0.0.1",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        f"--client-ca-file={pki}/ca.crt",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-bootstrap-token-auth=true",
        f"--etcd-cafile={pki}/etcd/ca.crt",
        f"--etcd-certfile={pki}/apiserver-etcd-client.crt",
        f"--etcd-keyfile={pki}/apiserver-etcd-client.key",
        f"--etcd-servers={etcd.urls[0]}",
        f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
        f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
        f"--proxy-client-key-file={pki}/front-proxy-client.key",
        "--requestheader-allowed-names=front-proxy-client",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-account-signing-key-file={pki}/sa.key",
        "--service-cluster-ip-range=10.96.0.0/12",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
    ]


class Caller:
    """Client with a certificate of kubeadm's authority, or a token."""

    def __init__(self, server: SubprocessServer, pki: Path) -> None:
        self._url = server.connection.url
        self._pki = pki

    def __call__(self, method: str, path: str, body: Any = None, shown: str = "", **headers: str) -> Any:
        """Return the decoded response; raise for an error."""
        context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        if shown:
            context.load_cert_chain(self._pki / f"{shown}.crt", self._pki / f"{shown}.key")
        data = None if body is None else json.dumps(body).encode()
        fields = {"Content-Type": "application/json", **{name.replace("_", "-"): one for name, one in headers.items()}}
        request = urllib.request.Request(self._url + path, data, fields, method=method)
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return json.load(answer)


def test_kubeadm(pki: Path, etcd: EtcdServer) -> None:
    """The server starts with kubeadm's command line and uses each of its files for the same purpose."""
    with SubprocessServer(*kubeadm(pki, etcd), timeout=60) as server:
        ask = Caller(server, pki)
        review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

        def user(**how: str) -> Any:
            return ask("POST", review, {"kind": "SelfSubjectReview"}, **how)["status"]["userInfo"]

        assert "system:masters" in user(shown="super-admin")["groups"]
        seen = user(shown="front-proxy-client", X_Remote_User="alice", X_Remote_Group="dev", X_Remote_Extra_A="b")
        assert (seen["username"], seen["groups"][:1], seen["extra"]["a"]) == ("alice", ["dev"], ["b"])
        service = ask("GET", "/api/v1/namespaces/default/services/kubernetes", shown="super-admin")
        assert service["spec"]["clusterIP"] == "10.96.0.1"
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        account = {"metadata": {"name": "a"}}
        ask("POST", accounts, account, shown="super-admin")
        expected = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        created = ask("POST", f"{accounts}/a/token", expected, shown="super-admin")
        bearer = f"Bearer {created['status']['token']}"
        assert user(Authorization=bearer)["username"] == "system:serviceaccount:default:a"
        info = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        published = eventually(lambda: ask("GET", info, shown="super-admin")["data"])
        assert published["requestheader-client-ca-file"] == (pki / "front-proxy-ca.crt").read_text()
        assert published["requestheader-allowed-names"] == '["front-proxy-client"]'
        assert (pki / "ca.crt").read_text().strip() in published["client-ca-file"]
        assert server.stop() == 0
        assert "Traceback" not in server.output(), server.output()


def test_other_distributions(pki: Path, etcd: EtcdServer, tmp_path: Path) -> None:
    """The additional flags of kind, k3s and kops, and of hardening guides, are accepted."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n")
    flags = [
        "--runtime-config=",
        "--feature-gates=",
        "--storage-backend=etcd3",
        "--anonymous-auth=false",
        "--api-audiences=https://kubernetes.default.svc.cluster.local,k3s",
        "--enable-aggregator-routing=true",
        "--profiling=false",
        "--service-node-port-range=30000-32767",
        "--tls-min-version=VersionTLS12",
        "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--service-account-lookup=true",
        "--endpoint-reconciler-type=lease",
        "--event-ttl=1h0m0s",
        "--enable-garbage-collector=true",
        "--goaway-chance=.001",
        "--request-timeout=300s",
        "--max-requests-inflight=1500",
        "--max-mutating-requests-inflight=500",
        "--default-watch-cache-size=200",
        "--storage-media-type=application/json",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={tmp_path}/audit.log",
        "--audit-log-maxage=30",
        "--audit-log-maxbackup=10",
        "--audit-log-maxsize=100",
        "--service-account-jwks-uri=https://kubernetes.default.svc/openid/v1/jwks",
        "--enable-admission-plugins=NamespaceLifecycle,LimitRanger,ServiceAccount,DefaultStorageClass,"
        "DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,NodeRestriction,ResourceQuota",
        "--v=2",
    ]
    with SubprocessServer(*kubeadm(pki, etcd), *flags, timeout=60) as server:
        ask = Caller(server, pki)
        assert ask("GET", "/api/v1/namespaces/default", shown="super-admin")["metadata"]["name"] == "default"
