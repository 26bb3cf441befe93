"""What an authorizer is asked, and what it may answer."""

from __future__ import annotations

from enum import Enum

from attrs import define, frozen

from .resource import UserInfo


class Decision(Enum):
    """Three-valued: no opinion passes the question on."""

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@frozen
class Verdict:
    """A decision and, for the audit and the logs, why."""

    decision: Decision
    reason: str = ""


@define(frozen=True)
class AuthorizerAttributes:
    """
    The question.

    @ivar verb: The API's verb (C{list}, C{deletecollection}), or the HTTP method in lower case for other paths.
    @ivar path: The request's path, for those that are not about resources.
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
