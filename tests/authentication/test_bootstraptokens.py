"""Tests for L{kubetwist.authentication.bootstraptokens}."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from twisted.logger import globalLogPublisher
from zope.interface.verify import verifyObject

from kubetwist.api.options import DeleteOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.api.resource import UserInfo
from kubetwist.authentication import bootstraptokens
from kubetwist.authentication.bootstraptokens import BootstrapTokenAuthenticator
from kubetwist.interfaces import IAuthenticator
from tests.registry.storetools import StoreTestCase

TOKEN = "abcdef.0123456789abcdef"


class Request:
    """The part of a request that authenticators use."""

    def __init__(self, token: str | None) -> None:
        self.fields = {} if token is None else {b"authorization": [b"Bearer " + token.encode()]}


class BootstrapTokenTests(StoreTestCase):
    """Tests for L{BootstrapTokenAuthenticator}."""

    resources = ("secrets", "namespaces")

    def setUp(self) -> None:
        """Create a server without tokens."""
        super().setUp()
        self.now = 1_800_000_000.0
        self.authenticator = BootstrapTokenAuthenticator(self.stores, lambda: self.now)
        verifyObject(IAuthenticator, self.authenticator)
        self.logged: list[str] = []

        def observe(event: Any) -> None:
            if event.get("problem"):
                self.logged.append(event["problem"])

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)

    def secret(self, kind: str = "bootstrap.kubernetes.io/token", meta: Any = None, **changes: str) -> None:
        """Create the Secret of the token; underscores in keys stand for hyphens."""
        data = {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            **{key.replace("_", "-"): value for key, value in changes.items()},
        }
        encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
        metadata = {"name": "bootstrap-token-abcdef", **(meta or {})}
        self.made(
            self.store("secrets"), {"metadata": metadata, "type": kind, "data": encoded}, RequestScope("kube-system")
        )

    def user(self, token: str | None = TOKEN) -> UserInfo | None:
        """Return the user of the token."""
        return self.authenticator.authenticate(Request(token))

    def problem(self, *arguments: Any, **changes: str) -> str:
        """Return the log line for a token whose Secret has these values."""
        self.secret(*arguments, **changes)
        self.assertIsNone(self.user())
        (problem,) = self.logged
        self.assertNotIn("0123456789abcdef", problem)
        return problem

    def test_user(self) -> None:
        """The token id is in the user name; the user is in the common group and in the extra groups of the Secret."""
        self.secret(
            auth_extra_groups="system:bootstrappers:workers,system:bootstrappers:a",
            expiration="2027-01-15T08:00:01Z",
        )
        groups = ("system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:workers")
        self.assertEqual(self.user(), UserInfo("system:bootstrap:abcdef", groups=(*groups, "system:authenticated")))

    def test_no_token(self) -> None:
        """Tokens of another form and tokens without a Secret are not authenticated."""
        self.secret()
        for token in (
            None,
            "",
            "abcdef",
            "ABCDEF.0123456789abcdef",
            TOKEN + "0",
            "x" + TOKEN,
            "zzzzzz.0123456789abcdef",
        ):
            self.assertIsNone(self.user(token), token)
        self.assertEqual(self.logged, [])

    def test_wrong(self) -> None:
        """A token with a wrong secret is not authenticated."""
        self.assertEqual(self.problem(token_secret="fedcba9876543210"), "has invalid value for key token-secret")

    def test_expired(self) -> None:
        """An expired token is not authenticated."""
        self.assertEqual(self.problem(expiration="2027-01-15T08:00:00Z"), "has expired at 2027-01-15T08:00:00Z")

    def test_odd_expiration(self) -> None:
        """A token whose expiration cannot be parsed has expired."""
        self.assertIn("counts as expired", self.problem(expiration="tomorrow"))

    def test_usage(self) -> None:
        """A Secret must have usage-bootstrap-authentication."""
        text = "is not marked usage-bootstrap-authentication=true"
        self.assertEqual(self.problem(usage_bootstrap_authentication="yes"), text)

    def test_type(self) -> None:
        """A Secret of another type is not a token."""
        self.assertEqual(self.problem("Opaque"), "has invalid type, expected bootstrap.kubernetes.io/token")

    def test_other_id(self) -> None:
        """The token id in the Secret must match the name of the Secret."""
        self.assertEqual(self.problem(token_id="zzzzzz"), "has invalid value for key token-id, expected abcdef")

    def test_groups(self) -> None:
        """Extra groups must have the prefix of bootstrap groups."""
        for number, group in enumerate(("system:masters", "system:bootstrappers:", "system:bootstrappers:a\n", "")):
            self.logged.clear()
            if number:
                deletion = self.store("secrets").delete(
                    RequestScope("kube-system"), "bootstrap-token-abcdef", DeleteOptions()
                )
                self.successResultOf(deletion)
            expected = f"system:bootstrappers:ok,{group}"
            self.assertIn("has invalid value for key auth-extra-groups", self.problem(auth_extra_groups=expected))

    def test_deleted(self) -> None:
        """A token whose Secret is being deleted is not authenticated."""
        self.secret(meta={"finalizers": ["example.com/hold"]})
        self.successResultOf(
            self.store("secrets").delete(RequestScope("kube-system"), "bootstrap-token-abcdef", DeleteOptions())
        )
        self.assertIsNone(self.user())
        self.assertEqual(self.logged, ["is deleted and awaiting removal"])

    def test_off(self) -> None:
        """The authenticator is disabled by default."""
        self.assertIsNone(bootstraptokens.make({"enable-bootstrap-token-auth": False}, None))
