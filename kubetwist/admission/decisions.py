"""Authorization checks by admission, handlers and controllers, in addition to the authorization of the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import maybeDeferred

from ..api.authorization import Authorizer, AuthorizerAttributes, Verdict


async def decide(authorizer: Authorizer, attributes: AuthorizerAttributes) -> Verdict:
    """
    Return the verdict of an authorizer, which may decide immediately or later.

    @raise Exception: Any exception of the authorizer.
    """
    authorize: Callable[[AuthorizerAttributes], Any] = authorizer.authorize
    verdict: Verdict = await maybeDeferred(authorize, attributes)
    return verdict
