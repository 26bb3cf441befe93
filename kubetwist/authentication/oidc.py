"""
Authentication of JSON Web Tokens of OpenID Connect issuers.

Tokens of issuers that are not configured are ignored without any I/O. The users of valid tokens are cached until the
token expires. Invalid tokens are not cached; each costs at most one verification.

@see: kubernetes, C{apiserver/plugin/pkg/authenticator/token/oidc}.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import orjson
from attrs import evolve, frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from zope.interface import implementer

from ..api.configurations import ConfigurationError
from ..api.featuregates import FeatureGates
from ..api.flagvalues import FlagValues
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject, UserInfo
from ..api.times import posix_now
from ..interfaces import IAuthenticator
from ..metrics.registry import Histogram, MetricSnapshot
from ._claims import user_of_claims
from ._jwks import (
    Provider,
    get,
)
from ._tokenparts import decode_part
from .bearer import bearer_token
from .configuration import (
    AuthenticationConfiguration,
    Issuer,
    JWTAuthenticatorConfig,
    configuration_of_flags,
    read_configuration,
)
from .errors import AuthenticationFailed
from .signingalgorithms import SIGNING_ALGORITHMS
from .union import TokenOnlyRequest

if TYPE_CHECKING:
    from ..client.factory import ClientFactory
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

#: Maximum number of cached tokens.
MAX_CACHE_ENTRIES: Final = 4096
#: Allowed clock skew for C{nbf} and C{iat} in seconds, as in the reference.
_LEEWAY: Final = 60
#: Seconds that a user is cached whose distributed claims were fetched from another server.
_DISTRIBUTED_CLAIMS_TTL: Final = 10
#: Maximum number of issuers of distributed claims per configuration.
_MAX_ISSUERS: Final = 16
#: The issuer in some of Google's tokens, and the issuer URL that it stands for.
_GOOGLE: Final = ("accounts.google.com", "https://accounts.google.com")
#: Histogram buckets of the duration of token authentications, in seconds.
_DURATION_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@frozen
class _Token:
    """
    A decoded token that is not verified.

    @ivar issuer: The unverified issuer claim.
    """

    raw: bytes
    header: JSONObject
    claims: JSONObject
    issuer: str

    @classmethod
    def parse(cls, raw: bytes) -> _Token | None:
        """Decode a token; return L{None} if it is not a signed JSON Web Token with an issuer."""
        if raw.count(b".") != 2:
            return None
        try:
            head, body, _ = map(decode_part, raw.split(b"."))
            claims = orjson.loads(body)
            issuer = claims.get("iss") if isinstance(claims, dict) else None
            if not isinstance(issuer, str):
                return None
            header = orjson.loads(head)
        except ValueError:
            return None
        if not isinstance(header, dict):
            return None
        return cls(raw, header, claims, _GOOGLE[1] if issuer == _GOOGLE[0] else issuer)


class _Verifier:
    """Verifies the tokens of one issuer."""

    def __init__(self, provider: Provider, audiences: Sequence[str], algorithms: Sequence[str]) -> None:
        self.provider = provider
        self._audiences = audiences
        self._algorithms = algorithms

    def claims(self, token: _Token, now: float) -> JSONObject | None:
        """
        Verify a token and return its claims.

        @param now: The time in seconds since the epoch.
        @return: The claims; L{None} if its key is unknown and can be fetched.
        @raise AuthenticationFailed: The token is invalid.
        """
        provider = self.provider
        if not provider.ready:
            raise AuthenticationFailed("oidc: authenticator not initialized")
        self._check_claims(token.claims, now)
        algorithm, key_id = token.header.get("alg"), token.header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            actual = quoted(algorithm) if isinstance(algorithm, str) else '""'
            expected = f"[{' '.join(map(quoted, self._algorithms))}]"
            text = f"id token signed with unsupported algorithm, expected {expected} got {actual}"
            raise AuthenticationFailed(f"oidc: verify token: oidc: {text}")
        if "crit" in token.header or "b64" in token.header:
            raise AuthenticationFailed("oidc: verify token: its header requires unsupported extensions")
        keys = provider.matching_keys(key_id if isinstance(key_id, str) else "", algorithm)
        if not keys and provider.may_fetch:
            return None
        payload = _verified_payload(token.raw, [key.key for key in keys], algorithm)
        if payload is None:
            text = "failed to verify signature: failed to verify id token signature"
            raise AuthenticationFailed(f"oidc: verify token: {text}")
        claims = orjson.loads(payload)
        # From here on only the signed payload is used, even if two decoders disagree on a token.
        if claims != token.claims:
            raise AuthenticationFailed("oidc: verify token: the claims differ from the signed payload")
        return token.claims

    def _check_claims(self, claims: Mapping[str, JSONValue], now: float) -> None:
        audience = claims.get("aud")
        values = audience if isinstance(audience, list) else [audience]
        audiences = [one for one in values if isinstance(one, str)]
        if not any(one in self._audiences for one in audiences):
            actual = f"[{' '.join(map(quoted, audiences))}]"
            if len(self._audiences) == 1:
                text = f"verify token: oidc: expected audience {quoted(self._audiences[0])} got {actual}"
            else:
                expected = f"[{' '.join(map(quoted, sorted(self._audiences)))}]"
                text = f"verify token: oidc: expected audience in {expected} got {actual}"
            raise AuthenticationFailed(f"oidc: {text}")
        expires = _seconds(claims, "exp")
        if expires is None or expires < now:
            text = f"oidc: token is expired (Token Expiry: {_format_time(expires or 0)})"
            raise AuthenticationFailed(f"oidc: verify token: {text}")
        begins = _seconds(claims, "nbf")
        if begins is not None and now + _LEEWAY < begins:
            text = f"oidc: current time {_format_time(now)} before the nbf (not before) time: {_format_time(begins)}"
            raise AuthenticationFailed(f"oidc: verify token: {text}")


class _Authenticator:
    """Authenticates the tokens of one issuer, and resolves their distributed claims (C{jwtAuthenticator})."""

    def __init__(
        self,
        configuration: JWTAuthenticatorConfig,
        provider: Provider,
        algorithms: Sequence[str],
        make_provider: Callable[[Issuer], Provider],
    ) -> None:
        self.configuration = configuration
        self.provider = provider
        self._algorithms = algorithms
        self._make_provider = make_provider
        self._verifier = _Verifier(provider, configuration.issuer.audiences, algorithms)
        #: Verifiers of distributed claims by issuer.
        self._claims_verifiers: dict[str, _Verifier] = {}

    def providers(self) -> list[Provider]:
        """Return the provider of the issuer and the providers of distributed claims."""
        return [self.provider, *(verifier.provider for verifier in self._claims_verifiers.values())]

    def user(self, token: _Token, now: float) -> tuple[UserInfo, float] | Deferred[tuple[UserInfo, float]]:
        """
        Return the user of a token and the time until which the user can be cached, in seconds since the epoch.

        @param now: The time in seconds since the epoch.
        @raise AuthenticationFailed: The token is invalid.
        """
        claims = self._verifier.claims(token, now)
        if claims is None or self._endpoint(claims) is not None:
            return Deferred.fromCoroutine(self._authenticate_async(token, now))
        return user_of_claims(self.configuration, claims), claims["exp"]

    async def _authenticate_async(self, token: _Token, now: float) -> tuple[UserInfo, float]:
        claims = await _verify(self._verifier, token, now)
        endpoint = self._endpoint(claims)
        if endpoint is None:
            return user_of_claims(self.configuration, claims), claims["exp"]
        claim = self.configuration.groups.claim
        try:
            value = await self._resolve(claim, endpoint, now)
        except AuthenticationFailed as error:
            raise AuthenticationFailed(f"oidc: could not expand distributed claims: {error}") from error
        user = user_of_claims(self.configuration, {**claims, claim: value})
        return user, min(claims["exp"], now + _DISTRIBUTED_CLAIMS_TTL)

    # Distributed claims: OpenID Connect Core 1.0, section 5.6.2.

    def _endpoint(self, claims: Mapping[str, JSONValue]) -> Mapping[str, JSONValue] | None:
        """Return the source of distributed claims for groups; L{None} without one."""
        claim = self.configuration.groups.claim
        if not claim or claim in claims or "_claim_names" not in claims:
            return None
        prefix = "oidc: could not expand distributed claims: "
        names, sources = claims["_claim_names"], claims.get("_claim_sources")
        if not isinstance(names, dict):
            raise AuthenticationFailed(f"{prefix}oidc: error parsing distributed claim names")
        if sources is None:
            raise AuthenticationFailed(f"{prefix}oidc: no claim sources")
        if not isinstance(sources, dict):
            raise AuthenticationFailed(f"{prefix}oidc: could not parse claim sources")
        source = names.get(claim)
        if source is None:
            return None
        endpoint = sources.get(source) if isinstance(source, str) else None
        if not isinstance(endpoint, dict):
            text = f"id token _claim_names contained a source {source} missing in _claims_sources"
            raise AuthenticationFailed(prefix + text)
        return endpoint if endpoint.get("endpoint") else None

    async def _resolve(self, claim: str, endpoint: Mapping[str, JSONValue], now: float) -> Any:
        from ..client.errors import (
            CallError,
            InvalidRESTConfig,
        )

        url, access = endpoint["endpoint"], endpoint.get("access_token", "")
        prefix = f"while getting distributed claim {quoted(claim)}"
        if not isinstance(url, str) or not isinstance(access, str) or not url.startswith("https://"):
            raise AuthenticationFailed(f"{prefix}: its endpoint is not an https URL")
        authorities = self.configuration.issuer.authorities
        outgoing = self.provider.outgoing
        try:
            # The URL comes from the token, not from the administrator: local addresses are refused.
            body = await get(outgoing, url, authorities, access, guarded=True)
        except (CallError, InvalidRESTConfig, AuthenticationFailed) as error:
            raise AuthenticationFailed(f"{prefix}: {error}") from error
        token = _Token.parse(body.strip())
        if token is None:
            raise AuthenticationFailed(f"getting untrusted issuer from endpoint {url} failed for claim {quoted(claim)}")
        try:
            claims = await _verify(self._verifier_for(token.issuer), token, now)
        except AuthenticationFailed as error:
            raise AuthenticationFailed(f"verify distributed claim token: {error}") from error
        if claim not in claims:
            text = f"jwt returned by distributed claim endpoint {quoted(url)} did not contain claim: {claim}"
            raise AuthenticationFailed(text)
        return claims[claim]

    def _verifier_for(self, issuer: str) -> _Verifier:
        if issuer == self.configuration.issuer.url:
            return self._verifier
        verifier = self._claims_verifiers.get(issuer)
        if verifier is None:
            if not issuer.startswith("https://") or len(self._claims_verifiers) >= _MAX_ISSUERS:
                raise AuthenticationFailed(f"verifier not initialized for issuer: {quoted(issuer)}")
            provider = self._make_provider(evolve(self.configuration.issuer, url=issuer, discovery=""))
            verifier = _Verifier(provider, self.configuration.issuer.audiences, self._algorithms)
            self._claims_verifiers[issuer] = verifier
        return verifier


async def _verify(verifier: _Verifier, token: _Token, now: float) -> JSONObject:
    """
    Verify a token as L{_Verifier.claims}, and fetch the issuer's keys if the key of the token is unknown.

    @raise AuthenticationFailed: The token is invalid.
    """
    provider = verifier.provider
    if not provider.ready and provider.may_fetch:
        await provider.fetch()
    claims = verifier.claims(token, now)
    if claims is None:
        await provider.fetch()
        claims = verifier.claims(token, now)
    if claims is None:
        raise AuthenticationFailed(
            "oidc: verify token: failed to verify signature: failed to verify id token signature"
        )
    return claims


@implementer(IAuthenticator)
class OIDCAuthenticator:
    """Authenticates tokens of OpenID Connect issuers."""

    def __init__(
        self,
        outgoing: ClientFactory,
        reactor: IReactorTime,
        implicit_audiences: Sequence[str] = (),
        algorithms: Sequence[str] = SIGNING_ALGORITHMS,
        now: Callable[[], float] = posix_now,
    ) -> None:
        """
        @param outgoing: L{kubetwist.client.factory.ClientFactory}.
        @param reactor: The clock for retries.
        @param implicit_audiences: The audiences of this server, for which TokenReviews accept these tokens.
        @param algorithms: The accepted signature algorithms.
        @param now: Returns the time in seconds since the epoch.
        """
        self._outgoing = outgoing
        self._reactor = reactor
        self._implicit = frozenset(implicit_audiences)
        self._algorithms = algorithms
        self._now = now
        self._by_issuer: dict[str, _Authenticator] = {}
        #: Users by digest of the token, with the time until which they are cached.
        self._cache: OrderedDict[bytes, tuple[UserInfo, float]] = OrderedDict()
        self._seconds: dict[tuple[str, str], Histogram] = {}

    def configure(self, configurations: Sequence[JWTAuthenticatorConfig]) -> None:
        """Replace the issuers; keys of unchanged issuers are kept."""
        before = {one.provider.issuer: one.provider for one in self._by_issuer.values()}
        by_issuer = {}
        for configuration in configurations:
            issuer = configuration.issuer
            provider = before.pop(issuer, None) or self._make_provider(issuer)
            by_issuer[issuer.url] = _Authenticator(configuration, provider, self._algorithms, self._make_provider)
        reused = {one.provider for one in by_issuer.values()}
        for one in self._by_issuer.values():
            for provider in one.providers():
                if provider not in reused:
                    provider.stop()
        self._by_issuer = by_issuer
        self._seconds = {key: one for key, one in self._seconds.items() if key[1] in by_issuer}
        self._clear_cache()

    def stop(self) -> None:
        """Stop the providers of all issuers. Idempotent."""
        for one in self._by_issuer.values():
            for provider in one.providers():
                provider.stop()

    def _make_provider(self, issuer: Issuer) -> Provider:
        provider = Provider(issuer, self._outgoing, self._reactor)
        provider.changed = self._clear_cache
        provider.start()
        return provider

    def _clear_cache(self) -> None:
        self._cache.clear()

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """@see: L{IAuthenticator.authenticate}."""
        raw = bearer_token(request)
        if raw is None or not self._by_issuer:
            return None
        if (
            isinstance(request, TokenOnlyRequest)
            and request.requested_audiences
            and self._implicit.isdisjoint(request.requested_audiences)
        ):
            # A review for other audiences fails without contacting an issuer.
            return None
        digest = sha256(raw).digest()
        now = self._now()
        cached = self._cache.get(digest)
        if cached is not None:
            if now < cached[1]:
                self._cache.move_to_end(digest)
                return cached[0]
            del self._cache[digest]
        token = _Token.parse(raw)
        authenticator = None if token is None else self._by_issuer.get(token.issuer)
        if token is None or authenticator is None:
            return None
        observe = partial(self._observe, token.issuer, perf_counter())
        try:
            user = authenticator.user(token, now)
        except AuthenticationFailed:
            observe("failure")
            raise
        if isinstance(user, Deferred):
            user.addBoth(_observe_result, observe)
            return user.addCallback(self._cache_user, digest, authenticator)
        observe("success")
        return self._cache_user(user, digest, authenticator)

    def _observe(self, issuer: str, began: float, result: str) -> None:
        seconds = self._seconds.get((result, issuer))
        if seconds is None:
            seconds = self._seconds[result, issuer] = Histogram(_DURATION_BUCKETS)
        seconds.observe(perf_counter() - began)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics of the configured issuers; labels contain digests of the issuer URLs."""
        prefix = "apiserver_authentication_jwt_authenticator_"
        seconds = [
            ((result, _issuer_hash(issuer)), one)
            for (result, issuer), one in self._seconds.items()
            if issuer in self._by_issuer
        ]
        text = "Duration of the authentication of tokens that are not cached, in seconds, by result and issuer."
        yield MetricSnapshot(f"{prefix}latency_seconds", "histogram", text, ("result", "jwt_issuer_hash"), seconds)
        fetched = [
            ((result, _issuer_hash(issuer), ""), seconds_since_epoch)
            for issuer, one in self._by_issuer.items()
            for result, seconds_since_epoch in one.provider.fetched_at.items()
        ]
        labels = ("result", "jwt_issuer_hash", "apiserver_id_hash")
        text = "Time of the last successful and the last failed fetch of an issuer's keys, in seconds since the epoch."
        yield MetricSnapshot(f"{prefix}jwks_fetch_last_timestamp_seconds", "gauge", text, labels, fetched)

    def _cache_user(self, entry: tuple[UserInfo, float], digest: bytes, authenticator: _Authenticator) -> UserInfo:
        # A late result may belong to a configuration that was replaced.
        if self._by_issuer.get(authenticator.configuration.issuer.url) is authenticator:
            while len(self._cache) >= MAX_CACHE_ENTRIES:
                self._cache.popitem(last=False)
            self._cache[digest] = entry
        return entry[0]


def _observe_result(result: Any, observe: Callable[[str], object]) -> Any:
    observe("failure" if isinstance(result, Failure) else "success")
    return result


def _issuer_hash(issuer: str) -> str:
    """Return the label value of an issuer in metrics."""
    return f"sha256:{sha256(issuer.encode()).hexdigest()}"


def _verified_payload(raw: bytes, keys: Sequence[Any], algorithm: str) -> bytes | None:
    """Return the payload of a token; L{None} if none of the keys verifies its signature."""
    import jwt

    jws = jwt.PyJWS()
    for key in keys:
        try:
            payload: bytes = jws.decode_complete(raw, key, [algorithm])["payload"]
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
        return payload
    return None


def _seconds(claims: Mapping[str, JSONValue], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AuthenticationFailed(
            f"oidc: verify token: oidc: failed to unmarshal claims: the {name} claim is not a time"
        )
    return value


def _format_time(seconds: float) -> str:
    """Format a time for messages; a number that is not a valid time is returned as text."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    except (ValueError, OverflowError, OSError):
        return str(seconds)


def configured(options: FlagValues, server: AuthenticationContext) -> AuthenticationConfiguration:
    """
    Return the configuration of C{--authentication-config} or of the flags C{--oidc-*}; it is read once per server.

    The file is read again when it changes; the settings for anonymous requests do not change then.

    @raise ConfigurationError: The configuration cannot be used.
    """
    configuration: AuthenticationConfiguration | None = server.authentication_configuration
    if configuration is not None:
        return configuration
    path = options["authentication-config"]
    issuers = options["service-account-issuer"]
    configures_anonymous = FeatureGates.from_options(options).enabled("AnonymousAuthConfigurableEndpoints")
    if not path:
        configuration = configuration_of_flags(options, issuers)
    else:

        def load(contents: Sequence[bytes]) -> AuthenticationConfiguration:
            new = read_configuration(contents[0], issuers, anonymous=configures_anonymous)
            before = server.authentication_configuration
            if before is not None and before.anonymous != new.anonymous:
                raise ConfigurationError("anonymous: Forbidden: changed from initial configuration file")
            return new

        def use(new: AuthenticationConfiguration) -> None:
            server.authentication_configuration = new
            for listener in server.authentication_config_listeners:
                listener(new)

        try:
            configuration = server.files.watch([path], load, use, "--authentication-config")
        except (OSError, ValueError) as error:
            reason = (
                f"open {path}: {(error.strerror or '').lower()}"
                if isinstance(error, OSError)
                else " ".join(str(error).split())
            )
            prefix = f"failed to load authentication configuration from file {quoted(path)}: "
            if reason.startswith("invalid authentication configuration"):
                prefix = ""
            raise ConfigurationError(f"{prefix}{reason}") from error
        if configuration.anonymous is not None and "anonymous-auth" in options.changed:
            raise ConfigurationError(
                "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in"
                " authentication configuration file"
            )
    server.authentication_configuration = configuration
    return configuration


def make(options: FlagValues, server: AuthenticationContext) -> OIDCAuthenticator | None:
    """
    Create the authenticator of C{--authentication-config} or of the flags C{--oidc-*}; L{None} without them.

    @raise ConfigurationError: The configuration cannot be used.
    """
    configuration = configured(options, server)
    if not configuration.jwt and not options["authentication-config"]:
        return None
    # With a configuration file, every algorithm that fits the key is accepted.
    algorithms = SIGNING_ALGORITHMS if options["authentication-config"] else options["oidc-signing-algs"]
    implicit = options["api-audiences"] or options["service-account-issuer"]
    tokens = OIDCAuthenticator(server.outgoing, server.reactor, implicit, algorithms or ("RS256",))
    tokens.configure(configuration.jwt)
    server.authentication_config_listeners.append(lambda new: tokens.configure(new.jwt))
    server.closers.append(tokens.stop)
    return tokens
