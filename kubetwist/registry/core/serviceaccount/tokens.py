"""
Tokens of service accounts: what they say, and the key that signs them.

@see: kubernetes, C{pkg/serviceaccount/claims.go} and C{jwt.go}.
"""

from __future__ import annotations

import hashlib
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jwt
from attrs import frozen
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from ....api.errors import APIStatusError, FieldError, invalid
from ....api.jsontypes import JSONValue
from ....api.resource import GroupKind, JSONObject
from ....api.users import service_account_user

#: What kubelets ask for pods; such tokens live longer where clients that read them only once still need them.
RENEWED_SECONDS: Final = 3607
#: How long those live.
EXTENDED_SECONDS: Final = 365 * 24 * 3600

_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_KIND: Final = GroupKind("authentication.k8s.io", "TokenRequest")


class BadSigningKey(ValueError):
    """A key that cannot sign tokens."""


@frozen(eq=False)
class TokenIssuer:
    """
    Signs tokens.

    @ivar issuer: Who says so: the first of C{--service-account-issuer}.
    @ivar audiences: Whom tokens are for that do not say it.
    @ivar longest: For how many seconds tokens are good at the most; 0 for no limit.
    @ivar extend: Whether L{EXTENDED_SECONDS} is how long those of pods live that are renewed before.
    """

    issuer: str
    audiences: Sequence[str]
    _key: Any
    _algorithm: str
    _key_id: str
    longest: int = 0
    extend: bool = True

    @classmethod
    def load(
        cls,
        pem: bytes,
        issuer: str,
        audiences: Sequence[str],
        longest: int = 0,
        extend: bool = True,
        *,
        own: bool = False,
    ) -> TokenIssuer:
        """
        Make one with a private key, RSA or elliptic.

        @param own: The key was made here, so whether its numbers are prime is not looked at each time.
        @raise BadSigningKey: It is none.
        """
        try:
            key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=own)
        except ValueError as error:
            raise BadSigningKey("no private key can be read from it") from error
        except TypeError as error:
            # So the library says that it wants a password.
            raise BadSigningKey("its private key is encrypted") from error
        if isinstance(key, rsa.RSAPrivateKey):
            algorithm = "RS256"
        elif isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
            algorithm = _CURVES[key.curve.name]
        else:
            raise BadSigningKey("only RSA keys and those on the curves P-256, P-384 and P-521 can sign tokens")
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        key_id = urlsafe_b64encode(hashlib.sha256(public).digest()).rstrip(b"=").decode()
        return cls(issuer, tuple(audiences), key, algorithm, key_id, longest, extend)

    def sign(self, claims: Mapping[str, JSONValue]) -> str:
        """A token that says C{claims}, and who issued it."""
        payload = {"iss": self.issuer, **claims}
        return jwt.encode(payload, self._key, algorithm=self._algorithm, headers={"kid": self._key_id})


def check_token_request(obj: JSONObject, name: str, namespace: str) -> None:
    """
    Compare a request with the path it came on.

    @raise APIStatusError: It is for another account (422).
    """
    meta = obj["metadata"]
    for field, wanted in (("name", name), ("namespace", namespace)):
        if meta.get(field) and meta[field] != wanted:
            text = f"must match the service account {field} if specified"
            raise APIStatusError.invalid(_KIND, name, [invalid(f"metadata.{field}", meta[field], text)])


def check_expiry(seconds: int) -> None:
    """
    Tokens live for ten minutes at least.

    @raise APIStatusError: This one would not (422).
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
    What the token of an account says.

    @param bound: The objects it ends with, by C{"pod"}, C{"secret"} and C{"node"}.
    @param now: In seconds since the epoch, as all times.
    @param seconds: How long it is good for.
    @param warn_after: After how many of them its use is strange; 0 for never.
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
