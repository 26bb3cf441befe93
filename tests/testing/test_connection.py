"""Tests for L{kubetwist.testing._connection}."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any

import yaml

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing._connection import (
    Connection,
    write_token_file,
)


def kubeconfig(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """Return a kubeconfig whose current context is not its first."""
    return {
        "current-context": "ours",
        "contexts": [
            {"name": "other", "context": {"cluster": "other", "user": "other"}},
            {"name": "ours", "context": {"cluster": "here", "user": "admin"}},
        ],
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
    }


class ConnectionTests(SynchronousTestCase):
    """L{Connection}."""

    def setUp(self) -> None:
        """Create a folder for the kubeconfig."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.path = self.folder / "admin.kubeconfig"

    def test_inline(self) -> None:
        """Inline certificates of the kubeconfig are decoded."""

        def inline(text: str) -> str:
            return base64.b64encode(text.encode()).decode()

        document = kubeconfig(
            {"server": "https://127.0.0.1:4711/", "certificate-authority-data": inline("the authority")},
            {"client-certificate-data": inline("the certificate"), "client-key-data": inline("the key")},
        )
        self.path.write_text(yaml.safe_dump(document))
        connection = Connection.from_kubeconfig(self.path, "secret")
        self.assertEqual(
            (connection.url, connection.port, connection.token), ("https://127.0.0.1:4711", 4711, "secret")
        )
        self.assertEqual(
            (connection.ca, connection.client_certificate, connection.client_key),
            ("the authority", "the certificate", "the key"),
        )

    def test_files(self) -> None:
        """Certificate files are relative to the kubeconfig, as in kubectl."""
        for name in ("ca.crt", "admin.crt", "admin.key"):
            (self.folder / name).write_text(f"contents of {name}")
        document = kubeconfig(
            {"server": "https://[::1]:4711", "certificate-authority": "ca.crt"},
            {"client-certificate": "admin.crt", "client-key": str((self.folder / "admin.key").absolute())},
        )
        self.path.write_text(yaml.safe_dump(document))
        connection = Connection.from_kubeconfig(self.path)
        self.assertEqual(connection.port, 4711)
        self.assertEqual(connection.ca, "contents of ca.crt")
        self.assertEqual(connection.client_key, "contents of admin.key")

    def test_token_file(self) -> None:
        """The token file has an administrator's token, a new one each time, and is readable by its owner only."""
        first, path = write_token_file(self.folder)
        token, _name, _uid, groups = path.read_text().strip().split(",")
        self.assertEqual((token, groups), (first, '"system:masters"'))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        second, _ = write_token_file(self.folder)
        self.assertNotEqual(first, second)
