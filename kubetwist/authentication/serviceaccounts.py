"""
Authentication of service account tokens: bound tokens that this server issues, and legacy tokens in Secrets.

A token is valid if its signature, times and audiences are, and the objects that it names exist. Verified signatures are
cached; everything that can change is checked with each request.

@see: kubernetes, C{pkg/serviceaccount}: C{jwt.go}, C{claims.go} and C{legacy.go}.
"""

from __future__ import annotations

from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import jwt
import orjson
from attrs import define, field

from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject, UserInfo
from ..api.times import posix_now, seconds_since_epoch
from ..api.users import service_account_groups, service_account_user, split_service_account
from ..interfaces import IAuthenticator
from ._lastused import LastUsed
from ._tokenparts import decode_part
from .bearer import bearer_token
from .errors import AuthenticationFailed
from .metrics import TokenMetrics
from .union import TokenOnlyRequest, add_authenticated_group

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ..registry.core.serviceaccount.tokenkeys import TokenKey
    from ..registry.stores import Stores
    from ._context import AuthenticationContext

#: The issuer of legacy tokens, which are stored in Secrets.
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
#: Allowed clock skew in seconds, and seconds for which a deleted object still counts.
LEEWAY: Final = 60
#: Maximum number of tokens whose verified signatures are cached.
MAX_CACHE_ENTRIES: Final = 4096

_PREFIX: Final = "authentication.kubernetes.io/"
_CREDENTIAL_ID: Final = f"{_PREFIX}credential-id"
_LEGACY: Final = "kubernetes.io/serviceaccount/"
_AUDIT: Final = "authentication.k8s.io/"
_AUTO_GENERATED: Final = (
    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated"
    " secret-based tokens."
)
_INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
_INVALIDATED: Final = "service account token has been invalidated"
_JWS: Final = jwt.PyJWS()


@define(eq=False)
class _Verified:
    """
    A token with a valid signature.

    @ivar seen: By resource, the record of the last check, with its uid and deletion time.
    """

    claims: JSONObject
    audiences: tuple[str, ...]
    user: UserInfo | None = None
    seen: dict[str, tuple[Any, str, float | None]] = field(factory=dict)


@implementer(IAuthenticator)
class ServiceAccountTokenAuthenticator:
    """Authenticates service account tokens. Returns L{None} for tokens of other issuers, for the next authenticator."""

    def __init__(
        self,
        keys: Sequence[TokenKey],
        issuers: Sequence[str],
        audiences: Sequence[str],
        stores: Stores,
        *,
        lookup: bool = True,
        now: Callable[[], float] = posix_now,
        used: Callable[[JSONObject], object] = lambda secret: None,
    ) -> None:
        """
        @param keys: L{kubetwist.registry.core.serviceaccount.tokenkeys.TokenKey}s.
        @param issuers: The accepted issuers, in addition to that of legacy tokens.
        @param audiences: The audiences of this server; tokens must be valid for one of them.
        @param stores: The stores of the server, which are read at each request.
        @param lookup: Whether legacy tokens must still exist in their Secret.
        @param now: Returns the time in seconds since the epoch.
        @param used: Called with the Secret of a legacy token at each use of the token.
        """
        self._keys = tuple(keys)
        self._used = used
        self._issuers = frozenset((*issuers, LEGACY_ISSUER))
        self._audiences = tuple(audiences)
        self._stores = stores
        self._lookup = lookup
        self._now = now
        self._known: OrderedDict[bytes, _Verified] = OrderedDict()
        self.metrics = TokenMetrics()

    def use_keys(self, keys: Sequence[TokenKey]) -> None:
        """Verify with these keys from now on; what others have signed is good no more."""
        self._keys = tuple(keys)
        self._known.clear()

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        if token is None:
            return None
        began = perf_counter()
        digest = sha256(token).digest()
        found = self._known.get(digest)
        hit = found is not None
        if found is None:
            try:
                found = self._verified(token)
            except AuthenticationFailed:
                self.metrics.looked_up(False, perf_counter() - began, "error")
                raise
            if found is None:
                return None
            while len(self._known) >= MAX_CACHE_ENTRIES:
                self._known.popitem(last=False)
            self._known[digest] = found
        else:
            self._known.move_to_end(digest)
        self.metrics.looked_up(hit, perf_counter() - began, "" if hit else "ok")
        # The client of a TokenReview may request other audiences than this server's.
        audiences_wanted = request.audiences_wanted if isinstance(request, TokenOnlyRequest) else self._audiences
        # In the order of the review and with its duplicates (C{authenticator.Audiences.Intersect}).
        shared = [audience for audience in audiences_wanted if audience in found.audiences]
        if not shared and self._audiences:
            raise AuthenticationFailed(
                f"token audiences {_listed(found.audiences)} is invalid for the target audiences"
                f" {_listed(audiences_wanted)}"
            )
        try:
            user = self._user(found, token, request)
        except _Expired:
            del self._known[digest]
            raise
        if isinstance(request, TokenOnlyRequest):
            request.granted_audiences = tuple(shared)
        return user

    # The signature.

    def _verified(self, token: bytes) -> _Verified | None:
        """
        Verify the signature of a token that is not cached.

        @return: L{None} for what is no token, or another issuer's.
        @raise AuthenticationFailed: The signature is not one of ours.
        """
        parts = token.split(b".")
        if len(parts) != 3:
            return None
        try:
            # The library accepts a signature with padding or trailing bytes.
            head, body, _ = map(decode_part, parts)
            claimed, header = orjson.loads(body), orjson.loads(head)
        except ValueError:
            return None
        if not isinstance(claimed, dict) or not isinstance(header, dict) or not self._is_ours(claimed):
            return None
        key_id = header.get("kid")
        keys = [key for key in self._keys if not key_id or key.key_id == key_id]
        if not keys:
            raise AuthenticationFailed("invalid signature, no keys found")
        if "crit" in header or "b64" in header:
            raise AuthenticationFailed("the header of the token asks for extensions")
        for key in keys:
            try:
                payload = _JWS.decode_complete(token, key.key, [key.algorithm])["payload"]
                break
            except (jwt.PyJWTError, ValueError, TypeError):
                continue
        else:
            # TokenReviews contain this text, which is the reference's.
            raise AuthenticationFailed("go-jose/go-jose: error in cryptographic primitive")
        claims = orjson.loads(payload)
        # From here on only the signed payload is used, even if two decoders disagree on a token.
        if not isinstance(claims, dict) or not self._is_ours(claims):
            raise AuthenticationFailed("the issuer of the token is not the one that signed it")
        audiences = claims.get("aud")
        if isinstance(audiences, str):
            audiences = [audiences]
        return _Verified(claims, tuple(audiences) if isinstance(audiences, list) and audiences else self._audiences)

    def _is_ours(self, claims: JSONObject) -> bool:
        issuer = claims.get("iss")
        return isinstance(issuer, str) and issuer in self._issuers

    # The claims.

    def _user(self, found: _Verified, token: bytes, request: IAuthenticationRequest) -> UserInfo:
        if found.claims["iss"] == LEGACY_ISSUER:
            return self._legacy_user(found, token, request)
        claims = found.claims
        now = self._now()
        _check_times(claims, now)
        private = _mapping(claims.get("kubernetes.io"))
        namespace = _text(private, "namespace")
        account = _mapping(private.get("serviceaccount"))
        secret, pod, node = (_mapping(private.get(kind)) for kind in ("secret", "pod", "node"))
        self._check_account(found, namespace, _text(account, "name"), _text(account, "uid"), now)
        if secret:
            self._check_bound(found, "secrets", "secret", namespace, secret, now)
        if pod:
            self._check_bound(found, "pods", "pod", namespace, pod, now)
        elif node:
            # The node of a pod is informational: the lifetime of the token depends on the pod only.
            self._check_bound(found, "nodes", "node", "", node, now)
        if found.user is None:
            extra = {}
            if _text(claims, "jti"):
                extra[_CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
            if _text(pod, "name") and _text(pod, "uid"):
                extra[f"{_PREFIX}pod-name"] = (pod["name"],)
                extra[f"{_PREFIX}pod-uid"] = (pod["uid"],)
            if _text(node, "name"):
                extra[f"{_PREFIX}node-name"] = (node["name"],)
                if _text(node, "uid"):
                    extra[f"{_PREFIX}node-uid"] = (node["uid"],)
            found.user = _user_of(namespace, account["name"], account["uid"], extra)
        warn_after = private.get("warnafter")
        if isinstance(warn_after, int) and warn_after and now > warn_after:
            self.metrics.count("stale_tokens")
            late = int(now) - warn_after
            text = f"subject: {_text(claims, 'sub')}, seconds after warning threshold: {late}"
            request.annotate("authentication.k8s.io/stale-token", text, "Metadata")
        else:
            self.metrics.count("valid_tokens")
        return found.user

    def _legacy_user(self, found: _Verified, token: bytes, request: IAuthenticationRequest) -> UserInfo:
        claims = found.claims
        named = {"sub": _text(claims, "sub")}
        for part, claim in (
            ("namespace", "namespace"),
            ("secretName", "secret.name"),
            ("serviceAccountName", "service-account.name"),
            ("serviceAccountUID", "service-account.uid"),
        ):
            named[part] = _text(claims, _LEGACY + claim)
        for part, value in named.items():
            if not value:
                raise AuthenticationFailed(f"{part} claim is missing")
        subject, namespace, secret_name, name, uid = named.values()
        if split_service_account(subject) != (namespace, name):
            raise AuthenticationFailed("sub claim is invalid")
        if self._lookup:
            secret = self._secret(namespace, secret_name, token)
            self._check_account(found, namespace, name, uid, None)
            self._check_use(secret, name, request)
        self.metrics.count("legacy_tokens")
        if found.user is None:
            found.user = _user_of(namespace, name, uid, {})
        return found.user

    # What is there.

    def _secret(self, namespace: str, name: str, token: bytes) -> JSONObject:
        secret: JSONObject | None = self._stores.get_copy("", "secrets", namespace, name)
        if secret is None or "deletionTimestamp" in secret["metadata"]:
            raise AuthenticationFailed(_INVALIDATED)
        try:
            stored = b64decode((secret.get("data") or {}).get("token") or "")
        except ValueError:
            stored = b""
        if not compare_digest(stored, token):
            raise AuthenticationFailed("service account token does not match server's copy")
        return secret

    def _check_use(self, secret: JSONObject, account: str, request: IAuthenticationRequest) -> None:
        """Note that a token is used that stands in a secret; some of those are not to be used any more."""
        meta = secret["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        self._used(secret)
        if (meta.get("labels") or {}).get(_INVALID_SINCE):
            self.metrics.count("invalid_legacy_auto_token_uses")
            request.annotate(f"{_AUDIT}legacy-token-invalidated", f"{name}/{namespace}", "Metadata")
            raise AuthenticationFailed(
                f"the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked"
                " invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the"
                f" '{_INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )
        owner = self._stores.get_copy("", "serviceaccounts", namespace, account) or {}
        if any(one.get("name") == name for one in owner.get("secrets") or ()):
            self.metrics.count("legacy_auto_token_uses")
            request.warn(_AUTO_GENERATED)
            request.annotate(f"{_AUDIT}legacy-token-autogenerated-secret", name, "Metadata")
        else:
            self.metrics.count("legacy_manual_token_uses")
            request.annotate(f"{_AUDIT}legacy-token-manual-secret", name, "Metadata")

    def _check_account(self, found: _Verified, namespace: str, name: str, uid: str, now: float | None) -> None:
        known = self._look_up(found, "serviceaccounts", namespace, name)
        if known is None:
            raise AuthenticationFailed(f"serviceaccounts {quoted(name)} not found")
        there, deleted = known
        if _is_gone(deleted, now):
            raise AuthenticationFailed(f"service account {namespace}/{name} has been deleted")
        if there != uid:
            raise AuthenticationFailed(f"service account UID ({there}) does not match claim ({uid})")

    def _check_bound(
        self, found: _Verified, resource: str, kind: str, namespace: str, claimed: Mapping[str, JSONValue], now: float
    ) -> None:
        known = self._look_up(found, resource, namespace, _text(claimed, "name"))
        if known is None or _is_gone(known[1], now):
            raise AuthenticationFailed(_INVALIDATED)
        uid = _text(claimed, "uid")
        if known[0] != uid:
            raise AuthenticationFailed(
                f"{kind} UID ({known[0]}) does not match service account {kind} ref claim ({uid})"
            )

    def _look_up(self, found: _Verified, resource: str, namespace: str, name: str) -> tuple[str, float | None] | None:
        """The uid of an object, and when it was deleted; L{None} when it is not there."""
        store = self._stores.find("", resource)
        record = None if store is None else store.cache.get(store.key(namespace, name))
        if record is None:
            return None
        seen = found.seen.get(resource)
        if seen is None or seen[0] is not record:
            meta = orjson.loads(record.item)["metadata"]
            deleted = meta.get("deletionTimestamp")
            at = seconds_since_epoch(deleted) if deleted else None
            seen = found.seen[resource] = (record, meta["uid"], at)
        return seen[1:]


class _Expired(AuthenticationFailed):
    """It never becomes good again."""


def _check_times(claims: JSONObject, now: float) -> None:
    expires, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
    if begins is not None and now + LEEWAY < begins:
        raise AuthenticationFailed("service account token is not valid yet")
    if expires is not None and now - LEEWAY > expires:
        raise _Expired("service account token has expired")
    if issued is not None and now + LEEWAY < issued:
        raise AuthenticationFailed("service account token is issued in the future")


def _time(claims: JSONObject, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AuthenticationFailed(f"the {name} claim is no time")
    return value


def _is_gone(deleted: float | None, now: float | None) -> bool:
    """Whether a deletion counts; without a time all do."""
    return deleted is not None and (now is None or deleted < now - LEEWAY)


def _user_of(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]]) -> UserInfo:
    user = service_account_user(namespace, name)
    return add_authenticated_group(UserInfo(user, uid, service_account_groups(namespace), extra))


def _mapping(value: JSONValue) -> Mapping[str, JSONValue]:
    return value if isinstance(value, dict) else {}


def _text(claims: Mapping[str, JSONValue], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _listed(audiences: Sequence[JSONValue]) -> str:
    return f"[{' '.join(quoted(str(audience)) for audience in audiences)}]"


def make(options: FlagValues, server: AuthenticationContext) -> ServiceAccountTokenAuthenticator | None:
    """Return the authenticator of service accounts; L{None} without keys."""
    if not server.token_keys:
        return None
    issuers = options["service-account-issuer"]
    tokens = ServiceAccountTokenAuthenticator(
        server.token_keys,
        issuers,
        options["api-audiences"] or issuers,
        server.stores,
        lookup=options["service-account-lookup"],
        used=LastUsed(server.stores).note,
    )
    server.token_key_listeners.append(tokens.use_keys)
    return tokens
