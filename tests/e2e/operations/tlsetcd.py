"""An etcd that requires client certificates, as operators run it, with the files of a client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.testing.etcd import EtcdServer, TLSFiles

from ...storage.etcd.test_loss import server_and_client


@frozen
class TLSEtcd:
    """
    A running etcd.

    @ivar urls: The client URLs of its members.
    @ivar folder: Has the files of a client: C{ca.crt}, C{tls.crt} and C{tls.key}.
    """

    urls: list[str]
    folder: Path


@contextmanager
def tls_etcd(folder: Path, members: int = 1) -> Iterator[TLSEtcd]:
    """Run an etcd, with its certificates in a new folder."""
    folder.mkdir()
    authority = CertificateAuthority.make("etcd")
    server = server_and_client(authority)
    client = authority.issue(CertConfig("kubetwist"))
    for name, content in (
        ("ca.crt", authority.certificate),
        ("server.crt", server.certificate),
        ("server.key", server.key),
        ("tls.crt", client.certificate),
        ("tls.key", client.key),
    ):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    files = TLSFiles(folder / "server.crt", folder / "server.key", folder / "ca.crt")
    with EtcdServer(members, tls=files) as etcd:
        yield TLSEtcd(etcd.urls, folder)
