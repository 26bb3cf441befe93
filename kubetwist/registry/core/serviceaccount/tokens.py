"""
Tokens of service accounts: their claims and signatures.

@see: kubernetes, C{pkg/serviceaccount/claims.go} and C{jwt.go}.
"""

from __future__ import annotations

import hashlib
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from ....api.errors import APIStatusError, FieldError, invalid
from ....api.jsontypes import JSONValue
from ....api.resource import GroupKind, JSONObject
from ....api.users import service_account_user

#: The lifetime in seconds that kubelets request for tokens of pods. Such tokens are extended for clients that do not
#: reload them.
RENEWED_SECONDS: Final = 3607
#: The extended lifetime in seconds.
EXTENDED_SECONDS: Final = 365 * 24 * 3600

_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_KIND: Final = GroupKind("authentication.k8s.io", "TokenRequest")


class BadSigningKey(ValueError):
    """The error for a key that cannot sign tokens."""


@define(eq=False)
class TokenIssuer:
    """
    The issuer of tokens.

    @ivar issuer: The claim C{iss}: the first value of C{--service-account-issuer}.
    @ivar audiences: The default audiences.
    @ivar max_seconds: The maximum lifetime of tokens in seconds; 0 for no limit.
    @ivar extend: Whether tokens of pods get the lifetime L{EXTENDED_SECONDS}.
    """

    issuer: str
    audiences: Sequence[str]
    _key: Any
    _algorithm: str
    _key_id: str
    max_seconds: int = 0
    extend: bool = True

    @classmethod
    def load(
        cls,
        pem: bytes,
        issuer: str,
        audiences: Sequence[str],
        max_seconds: int = 0,
        extend: bool = True,
        *,
        own: bool = False,
    ) -> TokenIssuer:
        """
        Return an issuer with an RSA or elliptic curve private key.

        @param pem: The private key.
        @param issuer: The claim C{iss}.
        @param audiences: The default audiences.
        @param max_seconds: The maximum lifetime of tokens in seconds; 0 for no limit.
        @param extend: Whether tokens of pods get the lifetime L{EXTENDED_SECONDS}.
        @param own: Whether this server generated the key, so that it need not be validated.
        @raise BadSigningKey: The file has no such key.
        """
        try:
            key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=own)
        except ValueError as error:
            raise BadSigningKey("no private key can be read from it") from error
        except TypeError as error:
            # The library raises this error if a password is required.
            raise BadSigningKey("its private key is encrypted") from error
        if isinstance(key, rsa.RSAPrivateKey):
            algorithm = "RS256"
        elif isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
            algorithm = _CURVES[key.curve.name]
        else:
            raise BadSigningKey("only RSA keys and those on the curves P-256, P-384 and P-521 can sign tokens")
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        key_id = urlsafe_b64encode(hashlib.sha256(public).digest()).rstrip(b"=").decode()
        return cls(issuer, tuple(audiences), key, algorithm, key_id, max_seconds, extend)

    def replace_key(self, other: TokenIssuer) -> None:
        """Sign with the key of another issuer from now on."""
        self._key, self._algorithm, self._key_id = other._key, other._algorithm, other._key_id

    def sign(self, claims: Mapping[str, JSONValue]) -> str:
        """Return a signed token with the claims and the issuer."""
        # Imported lazily: many servers, above all in tests, sign no token.
        import jwt

        payload = {"iss": self.issuer, **claims}
        return jwt.encode(payload, self._key, algorithm=self._algorithm, headers={"kid": self._key_id})


def check_token_request(obj: JSONObject, name: str, namespace: str) -> None:
    """
    Compare a TokenRequest with the path of the request.

    @raise APIStatusError: The TokenRequest names another account (422).
    """
    meta = obj["metadata"]
    for field, expected in (("name", name), ("namespace", namespace)):
        if meta.get(field) and meta[field] != expected:
            text = f"must match the service account {field} if specified"
            raise APIStatusError.invalid(_KIND, name, [invalid(f"metadata.{field}", meta[field], text)])


def check_expiry(seconds: int) -> None:
    """
    Validate the requested lifetime of a token.

    @raise APIStatusError: It is less than ten minutes (422).
    """
    errors: list[FieldError] = []
    if seconds < 600:
        errors.append(invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    elif seconds > 1 << 32:
        text = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid("spec.expirationSeconds", seconds, text))
    if errors:
        raise APIStatusError.invalid(_KIND, "", errors)


def token_claims(
    account: JSONObject,
    bound: Mapping[str, JSONObject],
    audiences: Sequence[str],
    now: int,
    seconds: int,
    warn_after: int = 0,
) -> dict[str, JSONValue]:
    """
    Return the claims of a token of a service account.

    @param account: The service account.
    @param bound: The objects that the token is bound to, by C{"pod"}, C{"secret"} and C{"node"}.
    @param audiences: The audiences.
    @param now: The current time in seconds since the epoch.
    @param seconds: The lifetime in seconds.
    @param warn_after: The number of seconds after which a use of the token is reported; 0 for never.
    """
    meta = account["metadata"]
    private: dict[str, Any] = {"namespace": meta["namespace"], "serviceaccount": _reference(account)}
    private.update((kind, _reference(obj)) for kind, obj in bound.items())
    if warn_after:
        private["warnafter"] = now + warn_after
    return {
        "aud": list(audiences),
        "exp": now + seconds,
        "iat": now,
        "jti": str(uuid.uuid4()),
        "kubernetes.io": private,
        "nbf": now,
        "sub": service_account_user(meta["namespace"], meta["name"]),
    }


def _reference(obj: JSONObject) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}
