"""Attributes and decisions of authorizers."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from enum import Enum
from typing import Protocol

from attrs import define, frozen

from .resource import UserInfo
from .selectors import Requirement


class Decision(Enum):
    """The decision of an authorizer; C{NO_OPINION} passes the request on to the next authorizer."""

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@frozen
class Verdict:
    """
    A decision with its reason, for audit events and logs.

    @ivar error: The error that occurred during evaluation, for example an authorizer that could not be reached.
    """

    decision: Decision
    reason: str = ""
    error: str = ""


@define(frozen=True)
class AuthorizerAttributes:
    """
    The attributes of a request that authorizers decide on.

    @ivar verb: The API's verb (C{list}, C{deletecollection}), or the HTTP method in lower case for other paths.
    @ivar path: The request's path, for non-resource requests.
    @ivar field_terms: The field requirements of the request or access review, as L{selectors.parse_field_selector}
        returns them. The requirements of a request are parsed at first access.
    @ivar label_terms: The same for labels.
    """

    user: UserInfo
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    is_resource_request: bool = True
    field_terms: Sequence[tuple[str, str, bool]] = ()
    label_terms: Sequence[Requirement] = ()


class Authorizer(Protocol):
    """The synchronous or asynchronous decision function below L{kubetwist.interfaces.IAuthorizer}."""

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Awaitable[Verdict]:
        """Decide whether a user may perform a request."""
