"""Stores of TokenReviews and SelfSubjectReviews, which are evaluated at creation and not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import maybeDeferred
from zope.interface import implementer

from ...api import times
from ...api.errors import APIStatusError
from ...api.options import CreateOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...api.users import user_object
from ...interfaces import ICreator
from ..generic.admitting import admit_virtual, check_namespace
from ..generic.capabilities import NamedResource
from ..generic.resourceinfo import ResourceInfo

if TYPE_CHECKING:
    from ..core.servercontext import ReviewedToken, ServerContext


@implementer(ICreator)
class SelfSubjectReview(NamedResource):
    """Returns the user of the request."""

    def __init__(self, info: ResourceInfo, context: ServerContext) -> None:
        self.info = info
        self._context = context

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """See L{ICreator.create}."""
        await admit_virtual(self.info, self._context.environment, scope, obj, options)
        now = times.now()
        return {"metadata": {"creationTimestamp": now}, "status": {"userInfo": user_object(scope.user)}}


@implementer(ICreator)
class TokenReview(NamedResource):
    """
    Authenticates the token in the request.

    A token without audiences is valid for the audiences of this server.
    """

    def __init__(self, info: ResourceInfo, context: ServerContext) -> None:
        self.info = info
        self._context = context

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """See L{ICreator.create}."""
        check_namespace(scope, obj)
        await admit_virtual(self.info, self._context.environment, scope, obj, options, _check_token)
        spec = obj.get("spec") or {}
        token = spec["token"]
        issuer = self._context.token_issuer
        own_audiences = () if issuer is None else issuer.audiences
        requested = spec.get("audiences") or own_audiences
        accepted = [audience for audience in requested if audience in own_audiences]
        find: Callable[..., Any] = self._context.authenticate_token
        review: ReviewedToken = await maybeDeferred(find, token, requested)
        audiences = accepted if review.audiences is None else review.audiences
        # The client's value remains if the token is not authenticated.
        status = {**(obj.get("status") or {})}
        if review.user is None or (requested and not audiences):
            status.pop("authenticated", None)
            obj["status"] = {"user": {}, **status, "error": review.error or "invalid bearer token"}
        else:
            obj["status"] = {**status, "authenticated": True, "user": user_object(review.user)}
            if audiences:
                obj["status"]["audiences"] = list(audiences)
        return obj


def _check_token(obj: JSONObject) -> None:
    if not (obj.get("spec") or {}).get("token"):
        raise APIStatusError.bad_request("token is required for TokenReview in authentication")
