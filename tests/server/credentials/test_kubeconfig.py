"""Tests of L{kubetwist.server.credentials.kubeconfig}."""

from __future__ import annotations

from typing import Any

import yaml

from tests.server.datadirvalues import DataDirectoryTestCase, mode


class KubeconfigTests(DataDirectoryTestCase):
    """Updates of the admin's kubeconfig."""

    def test_users_changes(self) -> None:
        """A start keeps the changes that kubectl has made to the kubeconfig."""
        path = self.start()
        self.change(path, lambda one: one["contexts"][0]["context"].update(namespace="demo"))
        before = path.read_bytes()
        self.assertIn(b"namespace: demo", before)
        self.start()
        self.assertEqual(path.read_bytes(), before)

    def test_new_certificate(self) -> None:
        """A start updates the server's entries and keeps the user's."""
        path = self.start()
        fresh = yaml.safe_load(path.read_bytes())

        def change(document: Any) -> None:
            document["contexts"][0]["context"]["namespace"] = "demo"
            document["contexts"].append({"name": "mine", "context": {"cluster": "kubetwist", "user": "bob"}})
            document["users"].insert(0, {"name": "bob", "user": {"token": "abc"}})
            document["users"][1]["user"] = {"token": "stale"}
            document["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}
            document["current-context"] = "mine"

        document = self.change(path, change)
        self.assertEqual(mode(path), 0o600)
        self.assertEqual(document["clusters"], fresh["clusters"])
        self.assertEqual(document["users"], [{"name": "bob", "user": {"token": "abc"}}, *fresh["users"]])
        self.assertEqual([one["name"] for one in document["contexts"]], ["kubernetes-admin@kubetwist", "mine"])
        self.assertEqual(document["contexts"][0]["context"], fresh["contexts"][0]["context"] | {"namespace": "demo"})
        self.assertEqual(document["current-context"], "mine")

    def test_missing_entries(self) -> None:
        """Missing entries are added."""
        path = self.start()
        fresh = yaml.safe_load(path.read_bytes())

        def change(document: Any) -> None:
            document |= {"contexts": None, "users": []}
            del document["current-context"]

        self.assertEqual(self.change(path, change), fresh)

    def test_invalid_kubeconfig(self) -> None:
        """An invalid kubeconfig is replaced."""
        path = self.start()
        fresh = path.read_bytes()
        for text in ("", "[]", "{", "users: 3", "clusters: [1]", "contexts: {name: x}", "\x00"):
            path.write_text(text)
            self.start()
            self.assertEqual(path.read_bytes(), fresh, text)
