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
    """As much of a request as authenticators look at."""

    def __init__(self, token: str | None) -> None:
        self.fields = {} if token is None else {b"authorization": [b"Bearer " + token.encode()]}


class BootstrapTokenTests(StoreTestCase):
    """Tests for L{BootstrapTokenAuthenticator}."""

    resources = ("secrets", "namespaces")

    def setUp(self) -> None:
        """A server without tokens."""
        super().setUp()
        self.now = 1_800_000_000.0
        self.known = BootstrapTokenAuthenticator(self.stores, lambda: self.now)
        verifyObject(IAuthenticator, self.known)
        self.logged: list[str] = []

        def observe(event: Any) -> None:
            if event.get("problem"):
                self.logged.append(event["problem"])

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)

    def secret(self, kind: str = "bootstrap.kubernetes.io/token", meta: Any = None, **changes: str) -> None:
        """Make the secret of the token; underscores in keys stand for dashes."""
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
        """Whose token it is."""
        return self.known.authenticate(Request(token))

    def problem(self, *arguments: Any, **changes: str) -> str:
        """What the log says of a token whose secret is otherwise."""
        self.secret(*arguments, **changes)
        self.assertIsNone(self.user())
        (problem,) = self.logged
        self.assertNotIn("0123456789abcdef", problem)
        return problem

    def test_user(self) -> None:
        """The id of a token names its user; it is in a group of its own, and in those that its secret wants."""
        self.secret(
            auth_extra_groups="system:bootstrappers:workers,system:bootstrappers:a",
            expiration="2027-01-15T08:00:01Z",
        )
        groups = ("system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:workers")
        self.assertEqual(self.user(), UserInfo("system:bootstrap:abcdef", groups=(*groups, "system:authenticated")))

    def test_no_token(self) -> None:
        """What is not of the form, and a token without its secret, is nobody's."""
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
        """A wrong secret is refused."""
        self.assertEqual(self.problem(token_secret="fedcba9876543210"), "has invalid value for key token-secret")

    def test_expired(self) -> None:
        """So is a token after its time."""
        self.assertEqual(self.problem(expiration="2027-01-15T08:00:00Z"), "has expired at 2027-01-15T08:00:00Z")

    def test_odd_expiration(self) -> None:
        """A time that can not be read is over."""
        self.assertIn("counts as expired", self.problem(expiration="tomorrow"))

    def test_usage(self) -> None:
        """A token must be meant for this."""
        text = "is not marked usage-bootstrap-authentication=true"
        self.assertEqual(self.problem(usage_bootstrap_authentication="yes"), text)

    def test_type(self) -> None:
        """A secret of another type is none."""
        self.assertEqual(self.problem("Opaque"), "has invalid type, expected bootstrap.kubernetes.io/token")

    def test_other_id(self) -> None:
        """The secret must say the id that its name says."""
        self.assertEqual(self.problem(token_id="zzzzzz"), "has invalid value for key token-id, expected abcdef")

    def test_groups(self) -> None:
        """Nobody gets into groups of another name."""
        for number, group in enumerate(("system:masters", "system:bootstrappers:", "system:bootstrappers:a\n", "")):
            self.logged.clear()
            if number:
                deletion = self.store("secrets").delete(
                    RequestScope("kube-system"), "bootstrap-token-abcdef", DeleteOptions()
                )
                self.successResultOf(deletion)
            wanted = f"system:bootstrappers:ok,{group}"
            self.assertIn("has invalid value for key auth-extra-groups", self.problem(auth_extra_groups=wanted))

    def test_deleted(self) -> None:
        """A secret that is being deleted is none any more."""
        self.secret(meta={"finalizers": ["example.com/hold"]})
        self.successResultOf(
            self.store("secrets").delete(RequestScope("kube-system"), "bootstrap-token-abcdef", DeleteOptions())
        )
        self.assertIsNone(self.user())
        self.assertEqual(self.logged, ["is deleted and awaiting removal"])

    def test_off(self) -> None:
        """There are none unless they are asked for."""
        self.assertIsNone(bootstraptokens.make({"enable-bootstrap-token-auth": False}, None))
