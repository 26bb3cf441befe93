"""Authorization checks that admission, handlers and controllers make in addition to that of the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import maybeDeferred

from ..api.authorization import Authorizer, AuthorizerAttributes, Verdict


async def decide(authorizer: Authorizer, attributes: AuthorizerAttributes) -> Verdict:
    """
    Return the verdict of an authorizer, which may decide immediately or later.

    @raise Exception: Whatever the authorizer raises.
    """
    authorize: Callable[[AuthorizerAttributes], Any] = authorizer.authorize
    verdict: Verdict = await maybeDeferred(authorize, attributes)
    return verdict
