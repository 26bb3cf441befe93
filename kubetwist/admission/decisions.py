"""Decisions of the authorizer about more than the request itself: on behalf of admission, handlers and controllers."""

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
