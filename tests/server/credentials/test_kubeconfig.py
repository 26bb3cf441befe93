"""Tests for L{kubetwist.server.credentials.kubeconfig}."""

from __future__ import annotations

from typing import Any

import yaml

from tests.server.datadirvalues import DataDirectoryTestCase, mode


class KubeconfigTests(DataDirectoryTestCase):
    """Credentials kept in the user's kubeconfig"""

    def test_users_kubeconfig(self) -> None:
        """A start leaves alone what kubectl has written into the kubeconfig."""
        path = self.start()
        self.change(path, lambda one: one["contexts"][0]["context"].update(namespace="demo"))
        before = path.read_bytes()
        self.assertIn(b"namespace: demo", before)
        self.start()
        self.assertEqual(path.read_bytes(), before)

    def test_new_certificate_in_users_kubeconfig(self) -> None:
        """What is the server's in the kubeconfig is brought up to date, and what is the users' stays as it is."""
        path = self.start()
        fresh = yaml.safe_load(path.read_bytes())

        def change(document: Any) -> None:
            document["contexts"][0]["context"]["namespace"] = "demo"
            document["contexts"].append({"name": "mine", "context": {"cluster": "kubetwist", "user": "bob"}})
            document["users"].insert(0, {"name": "bob", "user": {"token": "abc"}})
            document["users"][1]["user"] = {"token": "stale"}
            document["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}
            document["current-context"] = "mine"

        found = self.change(path, change)
        self.assertEqual(mode(path), 0o600)
        self.assertEqual(found["clusters"], fresh["clusters"])
        self.assertEqual(found["users"], [{"name": "bob", "user": {"token": "abc"}}, *fresh["users"]])
        self.assertEqual([one["name"] for one in found["contexts"]], ["kubernetes-admin@kubetwist", "mine"])
        self.assertEqual(found["contexts"][0]["context"], fresh["contexts"][0]["context"] | {"namespace": "demo"})
        self.assertEqual(found["current-context"], "mine")

    def test_lost_entries_of_kubeconfig(self) -> None:
        """Entries that are taken out of the kubeconfig are put in again."""
        path = self.start()
        fresh = yaml.safe_load(path.read_bytes())

        def change(document: Any) -> None:
            document |= {"contexts": None, "users": []}
            del document["current-context"]

        self.assertEqual(self.change(path, change), fresh)

    def test_unusable_kubeconfig(self) -> None:
        """What is no kubeconfig is written anew."""
        path = self.start()
        fresh = path.read_bytes()
        for text in ("", "[]", "{", "users: 3", "clusters: [1]", "contexts: {name: x}", "\x00"):
            path.write_text(text)
            self.start()
            self.assertEqual(path.read_bytes(), fresh, text)
