"""
The server as a client of an OpenID Connect provider: sign-in by an authorization code with PKCE.

A sign-in is bound to the browser by a random secret in a cookie. State, nonce and PKCE verifier are derived from
the secret, so the server keeps nothing between the request to the provider and its response, and any process of the
server can handle the response. ID tokens are decoded here, and verified by the authenticators of the server.

@see: OpenID Connect Core 1.0; RFC 6749, 7636 (PKCE), 9207 (issuer of a response).
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

import orjson
from attrs import field, frozen

from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ..api.configurations import ConfigurationError
from ..api.flagvalues import FlagValues
from ..api.go.quote import quoted
from ._jwks import WELL_KNOWN, decoded, get
from ._tokenparts import decode_part
from .errors import AuthenticationFailed
from .oidc import configured

if TYPE_CHECKING:
    from ..client.factory import ClientFactory
    from ..client.httpclient import Response
    from ._context import AuthenticationContext
    from .configuration import Issuer

#: Seconds within which a user must have signed in at the provider.
SIGN_IN_TIMEOUT: Final = 600
#: The path to which the provider redirects browsers.
CALLBACK: Final = "/ui/oidc/callback"
#: Timeout of a request to the provider, in seconds; a browser waits for it.
_TIMEOUT: Final = 10.0
#: Seconds for which the discovery document is cached, and for which a failure is.
_METADATA_TTL: Final = 300.0
_FAILURE_TTL: Final = 5.0
#: Maximum size of a response of the token endpoint, in bytes.
_MAX_RESPONSE_BYTES: Final = 256 * 1024
#: Maximum lengths in characters: of the parameters of a callback, of a token, of a text of the provider.
MAX_PARAMETERS_LENGTH: Final = 8192
_MAX_TOKEN_LENGTH: Final = 64 * 1024
_MAX_TEXT_LENGTH: Final = 300
#: Maximum number of concurrent requests to the token endpoint.
_MAX_CALLS: Final = 32
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class SignInFailed(Exception):
    """
    A sign-in with the provider failed. The text is for the user.

    @ivar invalid_grant: Whether the provider does not accept the code or the refresh token.
    """

    def __init__(self, text: str, *, invalid_grant: bool = False) -> None:
        super().__init__(text)
        self.invalid_grant = invalid_grant


@frozen
class ClientSettings:
    """
    The registration at the provider.

    @ivar issuer_url: The issuer; C{""} for the first configured one.
    @ivar client_secret: Returns the secret; C{""} for a public client.
    @ivar scopes: The requested scopes, without C{openid}.
    """

    client_id: str
    issuer_url: str = ""
    client_secret: Callable[[], str] = field(default=lambda: "", repr=False)
    scopes: Sequence[str] = ()


@frozen
class Metadata:
    """The part of a discovery document that a client needs."""

    authorization_endpoint: str
    token_endpoint: str
    end_session_endpoint: str
    sends_issuer: bool
    accepts_basic: bool

    @classmethod
    def parse(cls, document: Mapping[str, Any], issuer: str) -> Metadata:
        """
        Read a discovery document.

        @raise AuthenticationFailed: It is for another issuer, or an endpoint is missing.
        """
        if document.get("issuer") != issuer:
            raise AuthenticationFailed("the discovery document is for another issuer")
        methods = document.get("token_endpoint_auth_methods_supported")
        return cls(
            _endpoint(document, "authorization_endpoint"),
            _endpoint(document, "token_endpoint"),
            _endpoint(document, "end_session_endpoint") if "end_session_endpoint" in document else "",
            document.get("authorization_response_iss_parameter_supported") is True,
            not isinstance(methods, list) or "client_secret_basic" in methods or "client_secret_post" not in methods,
        )


@frozen
class Tokens:
    """
    The tokens of a user.

    @ivar refresh_token: C{""} if the provider has sent none.
    """

    id_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)


def new_secret() -> str:
    """Return a random secret for the cookie of a sign-in."""
    return token_urlsafe(32)


def _derive(secret: str, usage: str) -> str:
    """Return a value from which neither the secret nor the values for other usages can be computed."""
    return _encode(hmac.digest(secret.encode(), usage.encode(), sha256))


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


class OIDCClient:
    """Signs users in with a provider, and refreshes their ID tokens."""

    _log = Logger()

    def __init__(
        self,
        settings: ClientSettings,
        issuers: Callable[[], Sequence[Issuer]],
        outgoing: ClientFactory,
        reactor: IReactorTime,
    ) -> None:
        """
        @param issuers: Returns the issuers whose tokens the server accepts.
        @param outgoing: The factory of HTTP clients.
        @param reactor: The clock.
        """
        self.settings = settings
        self._issuers = issuers
        self._outgoing = outgoing
        self._reactor = reactor
        self._lock = DeferredLock()
        self._calls = 0
        #: The issuer and the document, or the error; with the time until which it is used.
        self._known: tuple[Issuer, Metadata | SignInFailed, float] | None = None

    def issuer(self) -> Issuer:
        """
        Return the issuer whose tokens are requested.

        @raise SignInFailed: The server does not accept tokens of the issuer for this client.
        """
        url = self.settings.issuer_url
        for issuer in self._issuers():
            if not url or issuer.url == url:
                if self.settings.client_id not in issuer.audiences:
                    raise SignInFailed(
                        f"tokens of {issuer.url} for the client {self.settings.client_id} are not accepted"
                    )
                return issuer
        raise SignInFailed(f"tokens of {url} are not accepted" if url else "no issuer of tokens is configured")

    async def authorization_url(self, secret: str, redirect_uri: str) -> str:
        """
        Return the URL at which the user signs in.

        @param secret: The secret in the cookie of the browser.
        @raise SignInFailed: The provider cannot be used.
        """
        metadata = await self._metadata(self.issuer())
        scopes = dict.fromkeys(("openid", *self.settings.scopes))
        parameters = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(scopes),
            "state": _derive(secret, "state"),
            "nonce": _derive(secret, "nonce"),
            "code_challenge": _encode(sha256(_derive(secret, "verifier").encode()).digest()),
            "code_challenge_method": "S256",
        }
        return _with_query(metadata.authorization_endpoint, parameters)

    async def end_session_url(self) -> str:
        """
        Return the URL at which the user signs out at the provider, which asks the user first.

        It contains no ID token as a hint, which would be in the history of the browser and in logs.

        @raise SignInFailed: The provider has none, or cannot be used.
        """
        endpoint = (await self._metadata(self.issuer())).end_session_endpoint
        if not endpoint:
            raise SignInFailed("the provider has no page for signing out")
        return _with_query(endpoint, {"client_id": self.settings.client_id})

    async def redeem(self, secret: str, redirect_uri: str, query: str) -> Tokens:
        """
        Exchange the code in a response of the authorization endpoint.

        The caller must authenticate the ID token: its signature is not verified here.

        @param secret: The secret in the cookie of the browser; C{""} without a cookie.
        @param query: The parameters of the response, escaped.
        @raise SignInFailed: The response does not belong to the browser or to the provider, or the exchange failed.
        """
        parameters = parse_parameters(query)
        # The state first: without it, the response may be from any site, and nothing of it is used.
        if not _SECRET.fullmatch(secret) or not _equal(_derive(secret, "state"), parameters.get("state", "")):
            raise SignInFailed("this sign-in was not started in this browser, or took longer than ten minutes")
        issuer = self.issuer()
        if "error" in parameters:
            # Errors may be without an issuer, and have no effect.
            raise _refusal(parameters)
        metadata = await self._metadata(issuer)
        sender = parameters.get("iss")
        if sender != issuer.url and (sender is not None or metadata.sends_issuer):
            raise SignInFailed("the response is from another provider")
        code = parameters.get("code")
        if not code:
            raise SignInFailed("the response of the provider has no code")
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        form["code_verifier"] = _derive(secret, "verifier")
        tokens = await self._request_tokens(metadata, issuer, form)
        if tokens is None:
            raise SignInFailed("the provider has sent no ID token")
        claims = self._claims(tokens.id_token, issuer)
        if not _equal(_derive(secret, "nonce"), claims.get("nonce")):
            raise SignInFailed("the ID token was issued for another sign-in")
        return tokens

    async def refresh(self, tokens: Tokens) -> Tokens | None:
        """
        Request a new ID token, which the caller must authenticate.

        @return: The new tokens; L{None} if the provider sends no ID token.
        @raise SignInFailed: The refresh failed, or the new token is for another user.
        """
        issuer = self.issuer()
        metadata = await self._metadata(issuer)
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token}
        new = await self._request_tokens(metadata, issuer, form)
        if new is None:
            return None
        before, after = self._claims(tokens.id_token, issuer), self._claims(new.id_token, issuer)
        if before.get("sub") != after.get("sub") or after.get("nonce", before.get("nonce")) != before.get("nonce"):
            raise SignInFailed("the new ID token is for another user", invalid_grant=True)
        return new if new.refresh_token else Tokens(new.id_token, tokens.refresh_token)

    def _claims(self, token: str, issuer: Issuer) -> Mapping[str, Any]:
        """
        Return the claims of an ID token, which must be for this client.

        @raise SignInFailed: They are invalid.
        """
        try:
            _, body, _ = token.split(".")
            claims = orjson.loads(decode_part(body.encode()))
        except ValueError:
            claims = None
        if not isinstance(claims, dict):
            raise SignInFailed("the ID token is not a JSON Web Token")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if claims.get("iss") != issuer.url:
            raise SignInFailed("the ID token is from another issuer")
        client = self.settings.client_id
        if client not in audiences or claims.get("azp", client) != client:
            raise SignInFailed("the ID token is for another client")
        return claims

    async def _metadata(self, issuer: Issuer) -> Metadata:
        """
        Return the discovery document; concurrent calls share one request.

        @raise SignInFailed: There is none, now or a few seconds ago.
        """
        await self._lock.acquire()
        try:
            known = self._known
            if known is None or known[0] != issuer or self._reactor.seconds() >= known[2]:
                known = self._known = await self._fetch_metadata(issuer)
        finally:
            self._lock.release()
        if isinstance(known[1], SignInFailed):
            raise SignInFailed(str(known[1]))
        return known[1]

    async def _fetch_metadata(self, issuer: Issuer) -> tuple[Issuer, Metadata | SignInFailed, float]:
        from ..client.errors import CallError, InvalidRESTConfig

        url = issuer.discovery or issuer.url.removesuffix("/") + WELL_KNOWN
        try:
            body = await get(self._outgoing, url, issuer.authorities, timeout=_TIMEOUT)
            metadata = Metadata.parse(decoded(body, url), issuer.url)
        except (AuthenticationFailed, CallError, InvalidRESTConfig) as error:
            self._log.warn("oidc: no sign-in with {issuer}: {reason}", issuer=issuer.url, reason=str(error))
            failure = SignInFailed(
                "the OpenID Connect provider cannot be reached or used; the server's log has the reason"
            )
            return issuer, failure, self._reactor.seconds() + _FAILURE_TTL
        return issuer, metadata, self._reactor.seconds() + _METADATA_TTL

    async def _request_tokens(self, metadata: Metadata, issuer: Issuer, form: dict[str, str]) -> Tokens | None:
        """
        Send a request to the token endpoint.

        @return: The tokens; L{None} if there is no ID token among them.
        @raise SignInFailed: The provider refuses it, does not answer, or too many requests wait.
        """
        if self._calls >= _MAX_CALLS:
            raise SignInFailed("too many users sign in at the same time; try again")
        self._calls += 1
        try:
            response = await self._post(metadata, issuer, form)
        finally:
            self._calls -= 1
        try:
            content = orjson.loads(response.body)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise SignInFailed(f"the provider answered {response.code}, without JSON")
        if response.code != 200 or "error" in content:
            raise _refusal(content)
        token, refresh = content.get("id_token"), content.get("refresh_token", "")
        if token is None:
            return None
        if not _is_token(token) or (refresh and not _is_token(refresh)):
            raise SignInFailed("the provider has sent invalid tokens")
        return Tokens(token, refresh or "")

    async def _post(self, metadata: Metadata, issuer: Issuer, form: dict[str, str]) -> Response:
        from ..client.errors import CallError, InvalidRESTConfig
        from ..client.restconfig import RESTConfig

        client_id, secret = self.settings.client_id, self.settings.client_secret()
        headers = {"Content-Type": ["application/x-www-form-urlencoded"], "Accept": ["application/json"]}
        if secret and metadata.accepts_basic:
            # RFC 6749, section 2.3.1: both parts are encoded as in a form.
            credentials = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
            headers["Authorization"] = [f"Basic {b64encode(credentials).decode()}"]
        else:
            form = {**form, "client_id": client_id, **({"client_secret": secret} if secret else {})}
        parts = urlsplit(metadata.token_endpoint)
        try:
            settings = RESTConfig(url=f"https://{parts.netloc}/", ca=issuer.authorities)
            client = self._outgoing.client(settings, limit=_MAX_RESPONSE_BYTES)
            try:
                return await client.fetch(
                    parts.path or "/",
                    timeout=_TIMEOUT,
                    method="POST",
                    query=parts.query,
                    body=urlencode(form).encode(),
                    headers=headers,
                )
            finally:
                await client.close()
        except (CallError, InvalidRESTConfig) as error:
            self._log.warn("oidc: no tokens from {issuer}: {reason}", issuer=issuer.url, reason=str(error))
            raise SignInFailed("the OpenID Connect provider does not answer; the server's log has the reason") from None


def parse_parameters(query: str) -> Mapping[str, str]:
    """
    Parse the parameters of a response.

    @raise SignInFailed: They are too long, or a parameter is repeated.
    """
    problem = "the response of the provider is invalid"
    if len(query) > MAX_PARAMETERS_LENGTH:
        raise SignInFailed(problem)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=32)
    except ValueError:
        raise SignInFailed(problem) from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise SignInFailed(problem)
    return parameters


def _with_query(endpoint: str, parameters: Mapping[str, str]) -> str:
    """Return an endpoint with further parameters."""
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"


def _refusal(content: Mapping[str, Any]) -> SignInFailed:
    """Return the error for an error response; its texts are from the provider."""
    error = _clean(content.get("error")) or "error"
    description = _clean(content.get("error_description"))
    text = f"the provider refused the sign-in: {error}{f': {description}' if description else ''}"
    return SignInFailed(text, invalid_grant=content.get("error") == "invalid_grant")


def _clean(text: object) -> str:
    """Return a text of the provider in one line of limited length, without control characters."""
    if not isinstance(text, str):
        return ""
    return "".join(char if char.isprintable() else " " for char in text[:_MAX_TEXT_LENGTH]).strip()


def _equal(expected: str, given: object) -> bool:
    """Compare in constant time."""
    return isinstance(given, str) and hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))


def _is_token(token: object) -> bool:
    return (
        isinstance(token, str)
        and 0 < len(token) <= _MAX_TOKEN_LENGTH
        and token.isascii()
        and token.isprintable()
        and " " not in token
    )


def _endpoint(document: Mapping[str, Any], name: str) -> str:
    """
    Return an endpoint of a discovery document.

    @raise AuthenticationFailed: It is missing, or not an https URL.
    """
    url = document.get(name)
    if not isinstance(url, str) or not re.fullmatch(r"https://[!-~]+", url) or "#" in url:
        raise AuthenticationFailed(f"the {name} is not an https URL")
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not host or "@" in urlsplit(url).netloc:
        raise AuthenticationFailed(f"the {name} {quoted(url)} is invalid")
    return url


def make_client(options: FlagValues, server: AuthenticationContext) -> OIDCClient | None:
    """
    Return the client of the flags C{--ui-oidc-*}; L{None} without them.

    @raise ConfigurationError: The secret cannot be read, or the issuer is not configured.
    """
    client_id = options["ui-oidc-client-id"]
    if not client_id:
        return None
    path = options["ui-oidc-client-secret-file"]
    secrets = [""]
    if path:

        def use(secret: str) -> None:
            secrets[0] = secret

        try:
            use(server.files.watch([path], _read_secret, use, "--ui-oidc-client-secret-file"))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigurationError(f"--ui-oidc-client-secret-file: {path}: {reason}") from error
    settings = ClientSettings(
        client_id, options["ui-oidc-issuer-url"], lambda: secrets[0], tuple(options["ui-oidc-scopes"])
    )

    def issuers() -> Sequence[Issuer]:
        return [one.issuer for one in configured(options, server).jwt]

    client = OIDCClient(settings, issuers, server.outgoing, server.reactor)
    try:
        client.issuer()
    except SignInFailed as error:
        raise ConfigurationError(f"--ui-oidc-client-id: {error}") from error
    return client


def _read_secret(contents: Sequence[bytes]) -> str:
    secret = contents[0].decode().strip()
    if not secret or not secret.isprintable():
        raise ValueError("it has no secret")
    return secret
