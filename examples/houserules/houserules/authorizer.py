"""An authorizer: users may do everything in the namespace that has their name."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.interfaces import IAuthorizer

_OWN = Verdict(Decision.ALLOW, "it is their own namespace")
_NOTHING = Verdict(Decision.NO_OPINION)


@implementer(IAuthorizer)
class OwnNamespace:
    """Allows users all requests in their own namespace; has no opinion on others, so that RBAC decides."""

    name = "OwnNamespace"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Implement L{IAuthorizer.authorize}, which may also return a Deferred."""
        own = attributes.is_resource_request and attributes.namespace and attributes.namespace == attributes.user.name
        return _OWN if own else _NOTHING


def make(options: Any, server: Any) -> OwnNamespace:
    """Return the authorizer for C{--authorization-mode=OwnNamespace}; C{options} has the flags."""
    return OwnNamespace()
