"""Everybody may do everything in the namespace that is called as they are."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.interfaces import IAuthorizer

_OWN = Verdict(Decision.ALLOW, "it is their own namespace")
_NOTHING = Verdict(Decision.NO_OPINION)


@implementer(IAuthorizer)
class OwnNamespace:
    """Allows users what they do in their own namespace; has no opinion about the rest, so that RBAC is asked."""

    name = "OwnNamespace"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{IAuthorizer.authorize}; it may also return a Deferred."""
        own = attributes.is_resource_request and attributes.namespace and attributes.namespace == attributes.user.name
        return _OWN if own else _NOTHING


def make(options: Any, server: Any) -> OwnNamespace:
    """What C{--authorization-mode=OwnNamespace} gets; C{options} are the flags."""
    return OwnNamespace()
