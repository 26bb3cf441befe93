"""
C{/ui/sign-in-links}: issue a sign-in link for the web UI, for C{kubetwist token signin-link}.

A session that begins with a link does not end with the credential that issued it. Therefore only members of
C{system:masters}, who can do everything else, too, can issue links. A link signs in as the user who has issued it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from klein import Klein
from twisted.internet.defer import Deferred

from ...api.errors import APIStatusError
from ...api.resource import GroupResource
from ...api.users import MASTERS
from ...authentication.sessions import SessionAuthenticator
from ...authentication.signinlinks import LIFETIME, SIGN_IN_LINKS, sign_in_url
from ...http.request import KubeRequest
from ...resources.routing import add_route, new_app

if TYPE_CHECKING:
    from ..config import ServerConfig


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
