"""Tests for L{kubetwist.testing._connection}."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any

import yaml

import treq
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.testing import CredentialError, InProcessServer
from kubetwist.testing._connection import (
    Connection,
    write_token_file,
)
from kubetwist.testing.trial import KubeAPIMixin


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


REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class IdentityTests(KubeAPIMixin, TestCase):
    """Connections of users and service accounts."""

    async def identity(self, connection: Connection) -> tuple[str, set[str]]:
        """Return the user and the groups that the server sees, the same for treq and for blocking requests."""
        response = await connection.treq().post(REVIEWS, json=REVIEW)
        user = (await treq.json_content(response))["status"]["userInfo"]
        _, review = await deferToThread(connection.request, "POST", REVIEWS, REVIEW)
        self.assertEqual(review["status"]["userInfo"]["username"], user["username"])
        return user["username"], set(user["groups"])

    async def test_user(self) -> None:
        """A user has a name and groups, and further users can be made from its connection."""
        server = await self.startKubeAPI("--controllers=")
        alice = server.connection.as_user("alice", ["dev", "ops"], namespace="dev")
        self.assertEqual(("alice", {"dev", "ops", "system:authenticated"}), await self.identity(alice))
        self.assertEqual(("dev", ""), (alice.namespace, alice.token))
        bob = alice.as_user("bob")
        self.assertEqual(("bob", {"system:authenticated"}), await self.identity(bob))
        self.assertEqual("", bob.namespace)
        self.assertIn("system:masters", (await self.identity(server.connection))[1])

    async def test_uid_and_extra(self) -> None:
        """A user with what a certificate cannot have gets a token."""
        server = await self.startKubeAPI("--controllers=", "--kubernetes-version=1.30")
        long = "a" * 65
        for name, more, expected in (
            ("alice", {"uid": "u1"}, {"uid": "u1"}),
            ("alice", {"extra": {"example.com/team": ["a", "b"]}}, {"extra": {"example.com/team": ["a", "b"]}}),
            (long, {}, {}),
        ):
            user = server.connection.as_user(name, ["dev"], **more)
            response = await user.treq().post(REVIEWS, json=REVIEW)
            info = (await treq.json_content(response))["status"]["userInfo"]
            self.assertEqual(name, info["username"])
            self.assertEqual({"dev", "system:authenticated"}, set(info["groups"]))
            self.assertEqual(expected, {field: info[field] for field in ("uid", "extra") if field in info})
            self.assertEqual(info["username"], (await self.identity(Connection.from_kubeconfig(user.kubeconfig)))[0])

    async def test_with_token(self) -> None:
        """A connection with another token, or with none, has no certificate."""
        server = await self.startKubeAPI("--controllers=")
        for token, code in ((server.token, 200), ("other", 401), ("", 403)):
            connection = server.connection.with_token(token)
            found, _ = await deferToThread(connection.request, "GET", "/api/v1/nodes")
            self.assertEqual((code, code), (found, (await connection.treq().get("/api/v1/nodes")).code))

    async def test_other_server(self) -> None:
        """Tokens need the key of the server, and the tokens of one server are invalid at another."""
        first, second = await self.startKubeAPI("--controllers="), await self.startKubeAPI("--controllers=")
        token = first.connection.as_user("alice", uid="u1").token
        with self.assertRaisesRegex(CredentialError, "need a server that kubetwist.testing has started"):
            Connection.from_kubeconfig(first.kubeconfig).as_user("alice", uid="u1")
        headers = {"Authorization": f"Bearer {token}"}
        for server, code in ((first, 201), (second, 401)):
            response = await server.connection.treq().post(REVIEWS, json=REVIEW, headers=headers)
            self.assertEqual(code, response.code)

    async def test_service_account(self) -> None:
        """A service account has a token of the API server, also if the connection of a user makes it."""
        server = await self.startKubeAPI("--controllers=")
        with self.assertRaisesRegex(CredentialError, "no service account robot in the namespace dev"):
            await server.as_service_account("dev", "robot")
        robot = await server.as_service_account("dev", "robot", create=True)
        name = "system:serviceaccount:dev:robot"
        groups = {"system:serviceaccounts", "system:serviceaccounts:dev", "system:authenticated"}
        self.assertEqual((name, groups), await self.identity(robot))
        self.assertEqual(("dev", ""), (robot.namespace, robot.client_certificate))
        default = await deferToThread(robot.as_service_account, "default", "default")
        self.assertEqual("system:serviceaccount:default:default", (await self.identity(default))[0])

    async def test_admin_without_token(self) -> None:
        """Without a token, requests are authenticated by the certificate of the kubeconfig."""
        server = await self.startKubeAPI("--controllers=")
        admin = Connection.from_kubeconfig(server.kubeconfig)
        self.assertEqual("kubernetes-admin", (await self.identity(admin))[0])

    async def test_files(self) -> None:
        """The files of users are removed with the server, also with a data directory that is kept."""
        folder = Path(self.mktemp()).absolute()
        async with InProcessServer("--controllers=", data_dir=folder) as server:
            path = server.connection.as_user("alice").kubeconfig
            self.assertEqual(0o600, stat.S_IMODE(path.stat().st_mode))
            before = set(folder.rglob("*"))
        self.assertFalse(path.exists())
        self.assertEqual([], [one for one in before if "alice" in one.name])

    async def test_repr(self) -> None:
        """The representation has no secrets."""
        server = await self.startKubeAPI("--controllers=")
        robot = await server.as_service_account("default", "default")
        for connection in (server.connection, server.connection.as_user("alice"), robot):
            shown = repr(connection)
            self.assertNotIn("PRIVATE KEY", shown)
            for one in (server.connection, robot):
                self.assertNotIn(one.token, shown)
