"""
Authentication of service account tokens: bound tokens that this server issues, and legacy tokens in Secrets.

A token is valid if its signature, times and audiences are valid and the objects that it names exist. Tokens with a
verified signature are cached; everything that can change is checked with each request.

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
#: Allowed clock skew in seconds, and seconds for which a deleted object is treated as existing.
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


@define(eq=False)
class _Verified:
    """
    A token with a valid signature.

    @ivar checked: By resource, the record of the last check, with its uid and deletion time.
    """

    claims: JSONObject
    audiences: tuple[str, ...]
    user: UserInfo | None = None
    checked: dict[str, tuple[Any, str, float | None]] = field(factory=dict)


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
        on_legacy_use: Callable[[JSONObject], object] = lambda secret: None,
    ) -> None:
        """
        @param keys: L{kubetwist.registry.core.serviceaccount.tokenkeys.TokenKey}s.
        @param issuers: The accepted issuers, in addition to L{LEGACY_ISSUER}.
        @param audiences: The audiences of this server; tokens must be valid for one of them.
        @param stores: The stores of the server, which are read at each request.
        @param lookup: Whether legacy tokens must still exist in their Secret.
        @param now: Returns the time in seconds since the epoch.
        @param on_legacy_use: Called with the Secret of a legacy token at each use of the token.
        """
        self._keys = tuple(keys)
        self._on_legacy_use = on_legacy_use
        self._issuers = frozenset((*issuers, LEGACY_ISSUER))
        self._audiences = tuple(audiences)
        self._stores = stores
        self._lookup = lookup
        self._now = now
        self._cache: OrderedDict[bytes, _Verified] = OrderedDict()
        self.metrics = TokenMetrics()

    def set_keys(self, keys: Sequence[TokenKey]) -> None:
        """Replace the keys; tokens with signatures of removed keys become invalid."""
        self._keys = tuple(keys)
        self._cache.clear()

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        if token is None:
            return None
        began = perf_counter()
        digest = sha256(token).digest()
        verified = self._cache.get(digest)
        hit = verified is not None
        if verified is None:
            try:
                verified = self._verify(token)
            except AuthenticationFailed:
                self.metrics.observe_lookup(False, perf_counter() - began, "error")
                raise
            if verified is None:
                return None
            while len(self._cache) >= MAX_CACHE_ENTRIES:
                self._cache.popitem(last=False)
            self._cache[digest] = verified
        else:
            self._cache.move_to_end(digest)
        self.metrics.observe_lookup(hit, perf_counter() - began, "" if hit else "ok")
        # The client of a TokenReview may request other audiences than the audiences of this server.
        requested = request.requested_audiences if isinstance(request, TokenOnlyRequest) else self._audiences
        # In the order of the review and with its duplicates (C{authenticator.Audiences.Intersect}).
        shared = [audience for audience in requested if audience in verified.audiences]
        if not shared and self._audiences:
            raise AuthenticationFailed(
                f"token audiences {_listed(verified.audiences)} is invalid for the target audiences"
                f" {_listed(requested)}"
            )
        try:
            user = self._user(verified, token, request)
        except _Expired:
            del self._cache[digest]
            raise
        if isinstance(request, TokenOnlyRequest):
            request.granted_audiences = tuple(shared)
        return user

    # The signature.

    def _verify(self, token: bytes) -> _Verified | None:
        """
        Verify the signature of a token that is not cached.

        @return: L{None} for a token of another format or issuer.
        @raise AuthenticationFailed: None of the keys verifies the signature.
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
            raise AuthenticationFailed("the header of the token requires unsupported extensions")
        # Imported lazily: many servers, above all in tests, verify no token.
        import jwt

        jws = jwt.PyJWS()
        for key in keys:
            try:
                payload = jws.decode_complete(token, key.key, [key.algorithm])["payload"]
                break
            except (jwt.PyJWTError, ValueError, TypeError):
                continue
        else:
            # TokenReviews contain this text, which is the reference's.
            raise AuthenticationFailed("go-jose/go-jose: error in cryptographic primitive")
        claims = orjson.loads(payload)
        # From here on only the signed payload is used, even if two decoders disagree on a token.
        if not isinstance(claims, dict) or not self._is_ours(claims):
            raise AuthenticationFailed("the issuer of the token differs from the issuer in the signed payload")
        audiences = claims.get("aud")
        if isinstance(audiences, str):
            audiences = [audiences]
        return _Verified(claims, tuple(audiences) if isinstance(audiences, list) and audiences else self._audiences)

    def _is_ours(self, claims: JSONObject) -> bool:
        issuer = claims.get("iss")
        return isinstance(issuer, str) and issuer in self._issuers

    # The claims.

    def _user(self, verified: _Verified, token: bytes, request: IAuthenticationRequest) -> UserInfo:
        if verified.claims["iss"] == LEGACY_ISSUER:
            return self._legacy_user(verified, token, request)
        claims = verified.claims
        now = self._now()
        _check_times(claims, now)
        private = _mapping(claims.get("kubernetes.io"))
        namespace = _text(private, "namespace")
        account = _mapping(private.get("serviceaccount"))
        secret, pod, node = (_mapping(private.get(kind)) for kind in ("secret", "pod", "node"))
        self._check_account(verified, namespace, _text(account, "name"), _text(account, "uid"), now)
        if secret:
            self._check_bound(verified, "secrets", "secret", namespace, secret, now)
        if pod:
            self._check_bound(verified, "pods", "pod", namespace, pod, now)
        elif node:
            # The node of a pod is informational: the lifetime of the token depends on the pod only.
            self._check_bound(verified, "nodes", "node", "", node, now)
        if verified.user is None:
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
            verified.user = _user_of(namespace, account["name"], account["uid"], extra)
        warn_after = private.get("warnafter")
        if isinstance(warn_after, int) and warn_after and now > warn_after:
            self.metrics.count("stale_tokens")
            overdue = int(now) - warn_after
            text = f"subject: {_text(claims, 'sub')}, seconds after warning threshold: {overdue}"
            request.annotate("authentication.k8s.io/stale-token", text, "Metadata")
        else:
            self.metrics.count("valid_tokens")
        return verified.user

    def _legacy_user(self, verified: _Verified, token: bytes, request: IAuthenticationRequest) -> UserInfo:
        claims = verified.claims
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
            self._check_account(verified, namespace, name, uid, None)
            self._check_legacy_use(secret, name, request)
        self.metrics.count("legacy_tokens")
        if verified.user is None:
            verified.user = _user_of(namespace, name, uid, {})
        return verified.user

    # The objects that a token is bound to.

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

    def _check_legacy_use(self, secret: JSONObject, account: str, request: IAuthenticationRequest) -> None:
        """
        Record the use of the token of a Secret.

        @raise AuthenticationFailed: The Secret is labelled as invalid.
        """
        meta = secret["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        self._on_legacy_use(secret)
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

    def _check_account(self, verified: _Verified, namespace: str, name: str, uid: str, now: float | None) -> None:
        account = self._get_identity(verified, "serviceaccounts", namespace, name)
        if account is None:
            raise AuthenticationFailed(f"serviceaccounts {quoted(name)} not found")
        actual_uid, deleted_at = account
        if _is_deleted(deleted_at, now):
            raise AuthenticationFailed(f"service account {namespace}/{name} has been deleted")
        if actual_uid != uid:
            raise AuthenticationFailed(f"service account UID ({actual_uid}) does not match claim ({uid})")

    def _check_bound(
        self,
        verified: _Verified,
        resource: str,
        kind: str,
        namespace: str,
        claimed: Mapping[str, JSONValue],
        now: float,
    ) -> None:
        bound = self._get_identity(verified, resource, namespace, _text(claimed, "name"))
        if bound is None or _is_deleted(bound[1], now):
            raise AuthenticationFailed(_INVALIDATED)
        uid = _text(claimed, "uid")
        if bound[0] != uid:
            raise AuthenticationFailed(
                f"{kind} UID ({bound[0]}) does not match service account {kind} ref claim ({uid})"
            )

    def _get_identity(
        self, verified: _Verified, resource: str, namespace: str, name: str
    ) -> tuple[str, float | None] | None:
        """Return the uid of an object and its deletion time, in seconds since the epoch; L{None} if it is absent."""
        store = self._stores.find("", resource)
        record = None if store is None else store.cache.get(store.cache_key(namespace, name))
        if record is None:
            return None
        checked = verified.checked.get(resource)
        if checked is None or checked[0] is not record:
            meta = orjson.loads(record.item)["metadata"]
            deleted = meta.get("deletionTimestamp")
            deleted_at = seconds_since_epoch(deleted) if deleted else None
            checked = verified.checked[resource] = (record, meta["uid"], deleted_at)
        return checked[1:]


class _Expired(AuthenticationFailed):
    """The token has expired; its cache entry is removed."""


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
        raise AuthenticationFailed(f"the {name} claim is not a time")
    return value


def _is_deleted(deleted_at: float | None, now: float | None) -> bool:
    """Return whether an object was deleted more than L{LEEWAY} ago; if C{now} is L{None}, whether it was deleted."""
    return deleted_at is not None and (now is None or deleted_at < now - LEEWAY)


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
        on_legacy_use=LastUsed(server.stores).record_use,
    )
    server.token_key_listeners.append(tokens.set_keys)
    return tokens
