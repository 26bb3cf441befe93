"""
Sign-in of browsers with an OpenID Connect provider: the cookie and the redirect URI of a request.

The redirect URI contains a host of the server. A host from the request is used only if it is known to belong to the
server: the provider compares the redirect URI with the registered ones, but a registration may contain wildcards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..api.configurations import ConfigurationError
from ..api.flagvalues import FlagValues
from .oidcclient import CALLBACK, OIDCClient, SignInFailed, Tokens, make_client

if TYPE_CHECKING:
    from ..http.request import KubeRequest
    from ._context import AuthenticationContext

#: The hosts of this machine, at which a browser may use any port: a port may be forwarded.
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class OIDCSignIn:
    """Sign-in with a provider."""

    def __init__(
        self,
        client: OIDCClient,
        cookie: Callable[[], bytes],
        hosts: Callable[[], Collection[str]],
        external_url: str = "",
    ) -> None:
        """
        @param cookie: Returns the name of the cookie that binds a sign-in to a browser.
        @param hosts: Returns the accepted values of C{Host}, in lower case, beside the hosts of this machine.
        @param external_url: The URL at which browsers reach the server; C{""} to use the C{Host} of requests.
        """
        self.client = client
        self.cookie = cookie
        self._hosts = hosts
        self._external_url = external_url

    def redirect_uri(self, request: KubeRequest) -> str:
        """
        Return the URL of this server to which the provider redirects the browser.

        @raise SignInFailed: The host of the request is not known to belong to this server.
        """
        host = (request.header(b"host") or b"").decode("latin-1").lower()
        if self._external_url:
            if f"https://{host}" != self._external_url:
                raise SignInFailed(f"open {self._external_url}/ui/ to sign in with OpenID Connect")
            return self._external_url + CALLBACK
        if host not in self._hosts() and not _is_local(host):
            raise SignInFailed(
                "signing in with OpenID Connect is not allowed at this host name; the server needs --ui-external-url"
            )
        return f"https://{host}{CALLBACK}"

    async def start(self, secret: str, request: KubeRequest) -> str:
        """
        Return the URL of the provider at which the user signs in.

        @param secret: The new secret in the cookie.
        @raise SignInFailed: It is not possible.
        """
        return await self.client.authorization_url(secret, self.redirect_uri(request))

    async def redeem(self, secret: str, request: KubeRequest, query: str) -> Tokens:
        """
        Return the tokens for a response of the provider; the caller authenticates the ID token.

        @param secret: The secret in the cookie; C{""} without one.
        @param query: The parameters of the response.
        @raise SignInFailed: There are none.
        """
        return await self.client.redeem(secret, self.redirect_uri(request), query)


def _is_local(host: str) -> bool:
    try:
        parts = urlsplit(f"https://{host}/")
        name, port = parts.hostname, parts.port
    except ValueError:
        return False
    written = f"[{name}]" if name and ":" in name else name
    return name in _LOCAL and host in (written, f"{written}:{port}")


def make_sign_in(options: FlagValues, server: AuthenticationContext) -> OIDCSignIn:
    """
    Return the sign-in of the flags C{--ui-oidc-*}.

    @raise ConfigurationError: It cannot be used.
    """
    client = make_client(options, server)
    if client is None:
        raise ConfigurationError("--ui-oidc-client-id is not set")

    def cookie() -> bytes:
        return b"__Host-kubetwist-oidc-" + server.address.rpartition(":")[2].encode()

    def hosts() -> Collection[str]:
        port = server.address.rpartition(":")[2]
        external = options["external-hostname"].lower()
        known = {server.address.lower()}
        if external:
            known |= {external} if ":" in external.rpartition("]")[2] else {f"{external}:{port}"}
        return known | {host.removesuffix(":443") for host in known}

    return OIDCSignIn(client, cookie, hosts, options["ui-external-url"].rstrip("/").lower().removesuffix(":443"))
