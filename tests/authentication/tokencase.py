"""Test cases with service accounts and their tokens."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from kubetwist.api.options import DeleteOptions
from kubetwist.api.resource import UserInfo
from kubetwist.authentication._lastused import (
    LABEL,
    LastUsed,
)
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.serviceaccounts import ServiceAccountTokenAuthenticator
from kubetwist.interfaces import IAuthenticator
from kubetwist.registry.core.serviceaccount.tokenkeys import load_token_keys
from kubetwist.registry.core.serviceaccount.tokens import TokenIssuer, token_claims
from tests.registry.storetools import StoreTestCase
from tests.tokenkeys import private_pem

NOW = 1_800_000_000


TODAY = "2027-01-15"


HERE = "https://here"


KEY = private_pem(ec.generate_private_key(ec.SECP256R1()))


class Request:
    """The part of a request that authenticators use."""

    def __init__(self, token: str | None) -> None:
        self.fields = {} if token is None else {b"authorization": [b"Bearer " + token.encode()]}
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}

    def warn(self, text: str) -> None:
        """Record a warning."""
        self.warnings.append(text)

    def annotate(self, key: str, value: str, level: str) -> None:
        """Record an annotation."""
        self.annotations[key] = value


class TokenCase(StoreTestCase):
    """A test case with a service account and its tokens."""

    resources = ("serviceaccounts", "pods", "secrets", "nodes")

    def setUp(self) -> None:
        """Create an account and the authenticator."""
        super().setUp()
        self.now = float(NOW)
        self.account = self.made(self.store("serviceaccounts"), {"metadata": {"name": "robot"}})
        self.issuer = TokenIssuer.load(KEY, HERE, [HERE])
        self.tokens = self.authenticator()

    def authenticator(self, *keys: bytes, **options: Any) -> ServiceAccountTokenAuthenticator:
        """Return an authenticator that accepts the tokens of these keys."""
        known = [key for pem in keys or (KEY,) for key in load_token_keys(pem)]
        options.setdefault("audiences", (HERE,))
        made = ServiceAccountTokenAuthenticator(
            known,
            [HERE, "https://before"],
            stores=self.stores,
            now=lambda: self.now,
            on_legacy_use=LastUsed(self.stores, lambda: self.now).record_use,
            **options,
        )
        verifyObject(IAuthenticator, made)
        return made

    def claims(self, seconds: int = 600, audiences: Any = (HERE,), **bound: Any) -> dict[str, Any]:
        """Return the claims of a token of the account."""
        return token_claims(self.account, bound, audiences, NOW, seconds)

    def token(self, **changes: Any) -> str:
        """Return a token with changed claims; L{None} removes a claim."""
        claims = {**self.claims(), **changes}
        return self.issuer.sign({name: value for name, value in claims.items() if value is not None})

    def user(self, token: str | None) -> UserInfo | None:
        """Return the user of a token."""
        self.request = Request(token)
        return self.tokens.authenticate(self.request)

    def error_text(self, token: str) -> str:  # type: ignore[override]
        """Return the error for a token."""
        return str(self.assertRaises(AuthenticationFailed, self.user, token))

    def remove(self, resource: str, name: str) -> None:
        """Delete an object, or mark it as deleted if it has finalizers."""
        deletion = self.store(resource).delete(self.scope, name, DeleteOptions(grace_period_seconds=0))
        self.successResultOf(Deferred.fromCoroutine(deletion))


class LegacyTestCase(TokenCase):
    """A test case with legacy tokens."""

    def legacy(self, **changes: str) -> str:
        """Return a legacy token without creating its Secret."""
        prefix = "kubernetes.io/serviceaccount/"
        claims = {
            "iss": "kubernetes/serviceaccount",
            "sub": "system:serviceaccount:default:robot",
            f"{prefix}namespace": "default",
            f"{prefix}secret.name": "s",
            f"{prefix}service-account.name": "robot",
            f"{prefix}service-account.uid": self.account["metadata"]["uid"],
        }
        claims.update(changes)
        return self.issuer.sign(claims)

    def create_secret(self, token: str, **meta: Any) -> None:
        """Create the Secret of a legacy token."""
        data = {"token": b64encode(token.encode()).decode()}
        self.made(self.store("secrets"), {"metadata": {"name": "s", **meta}, "data": data})

    def last_used(self) -> Any:
        """Return the day in the label of the Secret."""
        return self.stores.get_copy("", "secrets", "default", "s")["metadata"]["labels"].get(LABEL)
