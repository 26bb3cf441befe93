"""Tests of L{kubetwist.client.kubeconfig}."""

from __future__ import annotations

import base64
import contextlib
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.kubeconfig import (
    InvalidKubeconfig,
    parse_kubeconfig,
    read_kubeconfig,
)


def document(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """Return a kubeconfig of one cluster and one user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://hook.example/authorize", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **changes,
    }


class KubeconfigTests(SynchronousTestCase):
    """Parsing of kubeconfigs."""

    def setUp(self) -> None:
        """Create a folder for referenced files."""
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()

    def parse(self, config: Any) -> Any:
        """Parse a document."""
        return parse_kubeconfig(yaml.safe_dump(config).encode(), self.folder, "file")

    def test_inline(self) -> None:
        """Certificates and keys are read from inline data."""
        encoded = base64.b64encode(b"PEM").decode()
        settings = self.parse(
            document(
                {"certificate-authority-data": encoded, "tls-server-name": "name"},
                {"client-certificate-data": encoded, "client-key-data": encoded, "token": "t"},
            )
        )
        self.assertEqual(
            (settings.url, settings.ca, settings.certificate, settings.key, settings.token, settings.server_name),
            ("https://hook.example/authorize", b"PEM", b"PEM", b"PEM", "t", "name"),
        )

    def test_files(self) -> None:
        """Certificates, keys and tokens are read from files, relative to the kubeconfig."""
        for name in ("ca", "cert", "key"):
            (self.folder / name).write_bytes(name.encode())
        (self.folder / "token").write_text(" secret\n")
        path = self.folder / "kubeconfig"
        path.write_text(
            yaml.safe_dump(
                document(
                    {"certificate-authority": "ca"},
                    {"client-certificate": "cert", "client-key": str(self.folder / "key"), "tokenFile": "token"},
                )
            )
        )
        settings = read_kubeconfig(path)
        self.assertEqual(
            (settings.ca, settings.certificate, settings.key, settings.token), (b"ca", b"cert", b"key", "secret")
        )

    def test_password(self) -> None:
        """A user may have a username and a password."""
        self.assertEqual(self.parse(document(user={"username": "a", "password": "b"})).basic_auth, ("a", "b"))

    def test_scheme(self) -> None:
        """A server without a scheme uses TLS if the cluster or user has TLS settings."""
        for cluster, url in (
            ({"server": "hook:80"}, "http://hook:80"),
            ({"server": "hook:443", "certificate-authority-data": "eA=="}, "https://hook:443"),
            ({"server": "hook:443", "insecure-skip-tls-verify": True}, "https://hook:443"),
        ):
            self.assertEqual(self.parse(document(cluster)).url, url)

    def test_invalid(self) -> None:
        """An unusable kubeconfig is refused; the error has the file's name and client-go's text where one exists."""
        for config, expected in (
            ([], 'error loading config file "file": it is no kubeconfig'),
            ({}, "file: invalid configuration: no configuration has been provided"),
            (document(**{"current-context": "other"}), "file: context was not found for specified context: other"),
            (document(clusters=[]), 'file: invalid configuration: cluster "c" does not exist'),
            (document(users=None), 'file: invalid configuration: user "u" does not exist'),
            (document({"server": ""}), 'file: invalid configuration: no server found for cluster "c"'),
            (document({"server": 1}), "file: server must be a string"),
            (document({"certificate-authority-data": "!"}), "file: certificate-authority-data is not base64"),
            (document({"proxy-url": "http://p"}), 'file: proxy-url of cluster "c" is not supported here'),
            (document(user={"exec": {"command": "x"}}), 'file: exec of user "u" is not supported here'),
            (
                document({"certificate-authority-data": "eA==", "insecure-skip-tls-verify": True}),
                "file: specifying a root certificates file with the insecure flag is not allowed",
            ),
        ):
            error = self.assertRaises(InvalidKubeconfig, self.parse, config)
            self.assertEqual(str(error), expected)

    def test_unreadable(self) -> None:
        """The error for an unreadable file contains its path."""
        error = self.assertRaises(InvalidKubeconfig, self.parse, document({"certificate-authority": "ca"}))
        self.assertEqual(str(error), f"file: cannot read {self.folder / 'ca'}: No such file or directory")
        self.assertRaises(InvalidKubeconfig, read_kubeconfig, self.folder / "none")
        error = self.assertRaises(InvalidKubeconfig, parse_kubeconfig, b"a: [", self.folder, "file")
        self.assertTrue(str(error).startswith('error loading config file "file": yaml: '), str(error))

    @given(content=st.binary(max_size=60))
    def test_arbitrary_content(self, content: bytes) -> None:
        """Arbitrary content is parsed or fails with InvalidKubeconfig."""
        with contextlib.suppress(InvalidKubeconfig):
            parse_kubeconfig(content, Path("nowhere"), "file")
