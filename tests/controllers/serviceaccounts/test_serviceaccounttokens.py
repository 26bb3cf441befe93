"""Tests for L{kubetwist.controllers.serviceaccounts.serviceaccounttokens}."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import orjson
from attrs import define, field

from kubetwist.controllers.serviceaccounts.serviceaccounttokens import (
    ACCOUNT_NAME,
    ACCOUNT_UID,
    TYPE,
    TokensController,
)
from tests.controllers.harness import ControllerTestCase


@define
class Credentials:
    """The CA bundle of the server."""

    ca_bundle: bytes = b"our certificate"
    ca_bundle_listeners: list[Any] = field(factory=list)


class Issuer:
    """An issuer of readable, unsigned tokens."""

    def sign(self, claims: Any) -> str:
        """Return the claims as JSON."""
        return orjson.dumps(claims).decode()


@define(eq=False)
class Config:
    """Fake configuration of a server."""

    credentials: Credentials = field(factory=Credentials)
    token_issuer: Issuer = field(factory=Issuer)
    options: dict[str, Any] = field(factory=lambda: {"fake-nodes": 0})

    def trust(self, certificate: bytes) -> None:
        """Replace the CA bundle."""
        self.credentials.ca_bundle = certificate
        for follower in self.credentials.ca_bundle_listeners:
            follower()


class TokensControllerTests(ControllerTestCase):
    """Secrets with tokens of service accounts."""

    resources = ("namespaces", "secrets", "serviceaccounts")

    def setUp(self) -> None:
        """Create a service account."""
        self.config = Config()
        super().setUp()
        self.uid = self.make("serviceaccounts", "robot", "one")["metadata"]["uid"]

    def secret(self, name: str = "token", account: str = "robot", uid: str = "", **parts: Any) -> Any:
        """Create a Secret for a token."""
        annotations = {ACCOUNT_NAME: account} | ({ACCOUNT_UID: uid} if uid else {})
        self.make("secrets", name, "one", type=TYPE, metadata={"annotations": annotations}, **parts)
        self.settle()
        return self.find("secrets", name, "one")

    def data(self, secret: Any) -> dict[str, str]:
        """Return the decoded data of a Secret."""
        return {name: b64decode(value).decode() for name, value in (secret.get("data") or {}).items()}

    def claims(self, secret: Any) -> Any:
        """Return the claims of the token in a Secret."""
        return orjson.loads(self.data(secret)["token"])

    def test_filled(self) -> None:
        """Existing and new token Secrets get a token, the CA bundle and the namespace."""
        before = self.secret("before")
        self.assertNotIn("data", before)
        self.start(TokensController)
        for secret in (self.secret(), self.find("secrets", "before", "one")):
            meta = secret["metadata"]
            self.assertEqual(self.data(secret)["ca.crt"], "our certificate")
            self.assertEqual(self.data(secret)["namespace"], "one")
            self.assertEqual(
                self.claims(secret),
                {
                    "iss": "kubernetes/serviceaccount",
                    "kubernetes.io/serviceaccount/namespace": "one",
                    "kubernetes.io/serviceaccount/secret.name": meta["name"],
                    "kubernetes.io/serviceaccount/service-account.name": "robot",
                    "kubernetes.io/serviceaccount/service-account.uid": self.uid,
                    "sub": "system:serviceaccount:one:robot",
                },
            )
            self.assertEqual(meta["annotations"], {ACCOUNT_NAME: "robot", ACCOUNT_UID: self.uid})

    def test_kept(self) -> None:
        """An existing token and other data are kept. Missing data is added."""
        self.start(TokensController)
        secret = self.secret(data={"token": "bWluZQ==", "more": "eQ==", "ca.crt": "b2xk"})
        self.assertEqual(
            self.data(secret), {"token": "mine", "more": "y", "ca.crt": "our certificate", "namespace": "one"}
        )
        before = self.memory.revision
        self.change("secrets", "token", lambda obj: obj["metadata"].update(labels={"a": "b"}), "one")
        self.settle()
        self.assertEqual(self.memory.revision, before + 1)
        self.change("secrets", "token", lambda obj: obj["data"].pop("token"), "one")
        self.settle()
        self.assertEqual(self.claims(self.find("secrets", "token", "one"))["sub"], "system:serviceaccount:one:robot")

    def test_other_secrets(self) -> None:
        """Secrets of other types are not changed."""
        self.start(TokensController)
        self.make("secrets", "plain", "one", metadata={"annotations": {ACCOUNT_NAME: "nobody"}})
        self.settle()
        self.assertNotIn("data", self.find("secrets", "plain", "one"))

    def test_no_account(self) -> None:
        """A token Secret is deleted if its service account does not exist or has another uid."""
        self.start(TokensController)
        self.assertIsNone(self.secret(account="nobody"))
        self.assertIsNone(self.secret(uid="another"))
        self.assertIsNotNone(self.secret(uid=self.uid))

    def test_deleted_account(self) -> None:
        """Deleting a service account deletes its tokens. Tokens of a new account with the same name are kept."""
        self.start(TokensController)
        self.secret("a")
        self.secret("b")
        self.make("serviceaccounts", "other", "one")
        self.secret("c", account="other")
        self.remove("serviceaccounts", "robot", "one")
        self.settle()
        self.assertEqual(self.names("secrets"), ["c"])
        self.make("serviceaccounts", "robot", "one")
        self.secret("d")
        self.settle(60)
        self.assertEqual(self.names("secrets"), ["c", "d"])

    def test_account_deleted_during_downtime(self) -> None:
        """Tokens of an account that was deleted during downtime are deleted."""
        self.start(TokensController)
        self.secret()
        self.restart()
        self.remove("serviceaccounts", "robot", "one")
        self.settle()
        self.assertEqual(self.names("secrets"), ["token"])
        self.start(TokensController)
        self.assertEqual(self.names("secrets"), [])

    def test_reference(self) -> None:
        """A deleted Secret is removed from the secrets of the service account."""
        self.start(TokensController)
        self.secret("a")
        self.change("serviceaccounts", "robot", lambda obj: obj.update(secrets=[{"name": "a"}, {"name": "b"}]), "one")
        self.remove("secrets", "a", "one")
        self.settle()
        self.assertEqual(self.find("serviceaccounts", "robot", "one")["secrets"], [{"name": "b"}])

    def test_certificate(self) -> None:
        """A changed CA bundle is written to all Secrets, and their tokens are kept."""
        self.start(TokensController)
        before = self.data(self.secret())
        assert self.config is not None
        self.config.trust(b"another")
        self.settle()
        self.assertEqual(self.data(self.find("secrets", "token", "one")), {**before, "ca.crt": "another"})

    def test_killed(self) -> None:
        """After a kill at any write all Secrets are correct in the end."""

        def prepare() -> None:
            self.make("serviceaccounts", "robot", "one")
            for name in "abc":
                self.secret(name)
            self.secret("lost", "nobody")

        self.reset_stores()
        self.check_kill_at_each_write(
            prepare,
            lambda: [sorted(self.data(self.find("secrets", name, "one"))) for name in self.names("secrets")],
            TokensController,
        )

    def test_faults(self) -> None:
        """
        With every tenth write failing, all Secrets get a token in the end, and those without an account are deleted.
        """
        for number in range(40):
            self.secret(f"s{number}", "nobody" if number % 4 == 0 else "robot")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(TokensController)
        self.settle(10)
        self.assertEqual(len(self.names("secrets")), 30)
        for name in self.names("secrets"):
            self.assertIn("token", self.data(self.find("secrets", name, "one")))
