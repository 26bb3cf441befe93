"""Whoever is known may do everything, whoever is not may see that the server lives."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.users import AUTHENTICATED
from ..interfaces import IAuthorizer

#: What RBAC's bootstrap role C{system:public-info-viewer} lets everyone read.
PUBLIC = frozenset(("/healthz", "/livez", "/readyz", "/version", "/version/"))

_ALLOWED = Verdict(Decision.ALLOW)
_NO_OPINION = Verdict(Decision.NO_OPINION)


@implementer(IAuthorizer)
class AuthenticatedUsers:
    """Allows everything to members of C{system:authenticated}, and reading L{PUBLIC} paths to all."""

    name = "AuthenticatedUsers"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """@see: L{IAuthorizer.authorize}."""
        if AUTHENTICATED in attributes.user.groups:
            return _ALLOWED
        if not attributes.is_resource_request and attributes.verb == "get" and attributes.path in PUBLIC:
            return _ALLOWED
        return _NO_OPINION


def make(options: Any, server: Any) -> AuthenticatedUsers:
    """The same for everyone."""
    return AuthenticatedUsers()
