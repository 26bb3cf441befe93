"""
C{/ui/sign-in-links}: issue a sign-in link for the web UI, for C{kubetwist token signin-link}.

A session that begins with a link does not end with the credential that issued it. Therefore only members of
C{system:masters}, who can do everything else, too, can issue links. A link signs in as the user who has issued it.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

import orjson

from klein import Klein
from twisted.internet.defer import Deferred

from ...api.errors import APIStatusError
from ...api.resource import GroupResource
from ...api.users import MASTERS
from ...authentication.sessions import SessionAuthenticator
from ...authentication.signinlinks import LIFETIME
from ...http.request import KubeRequest
from ...resources.routing import RoutedApp, add_route, new_app

if TYPE_CHECKING:
    from ..config import ServerConfig
    from ..generic import GenericServer

SIGN_IN_LINKS: Final = "/ui/sign-in-links"


class SignInLinkEndpoint:
    """Issues sign-in links."""

    def __init__(self, config: ServerConfig, sessions: SessionAuthenticator) -> None:
        self._config = config
        self._sessions = sessions

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        add_route(app, "POST", SIGN_IN_LINKS, self._respond, slashes=False)
        return app

    async def _respond(self, request: KubeRequest) -> None:
        user = request.user
        assert user is not None, "the filters authenticate requests"
        if MASTERS not in user.groups or request.signed_in:
            why = f"members of {MASTERS} can issue sign-in links, without a session of the web UI"
            raise APIStatusError.forbidden(GroupResource("", ""), "", why)
        issued = self._sessions.links.issue(user)
        secret = await issued if isinstance(issued, Deferred) else issued
        url = sign_in_url(self._config.options["bind-address"], self._config.bound.port, secret)
        request.setHeader(b"Cache-Control", b"no-store")
        body = {"kind": "SignInLink", "url": url, "expirationSeconds": int(LIFETIME)}
        request.respond(201, orjson.dumps(body), b"application/json")


def sign_in_url(bind_address: str, port: int, secret: str) -> str:
    """Return the URL of a sign-in link, for a browser on this machine."""
    address = ipaddress.ip_address(bind_address)
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "[::1]"
    else:
        host = f"[{address}]" if address.version == 6 else str(address)
    return f"https://{host}:{port}/ui/#sign-in={secret}"


def install_sign_in_links(config: ServerConfig, server: GenericServer) -> None:
    """Serve the endpoint, if there is a web UI."""
    if config.sessions is not None:
        endpoint = SignInLinkEndpoint(config, config.sessions)
        server.mux.handle(SIGN_IN_LINKS, RoutedApp(endpoint.make_app), exposed=False)
