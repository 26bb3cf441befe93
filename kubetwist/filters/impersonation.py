"""
Acting as somebody else, by those who may.

@see: kubernetes, C{apiserver/pkg/endpoints/filters/impersonation.go}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from twisted.internet.defer import Deferred

from ..api.authorization import AuthorizerAttributes, Decision
from ..api.errors import APIStatusError
from ..api.goquote import quoted
from ..api.resource import UserInfo
from ..api.users import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, service_account_groups, split_service_account
from ..interfaces import IAuthorizer
from .authorization import forbid

if TYPE_CHECKING:
    from ..server.site import Handler, KubeRequest

_PREFIX: Final = b"impersonate-"
_USER: Final = b"impersonate-user"
_UID: Final = b"impersonate-uid"
_GROUP: Final = b"impersonate-group"
_EXTRA: Final = b"impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"


def with_impersonation(handler: Handler, authorizer: IAuthorizer) -> Handler:
    """
    Take the request for that of whom its C{Impersonate-} headers name, if its sender may impersonate all that they say.

    Answer 400 to headers that name no user or more than one, 403 to who may not.
    """

    def impersonation(request: KubeRequest) -> None:
        for name in request.fields:
            if name.startswith(_PREFIX):
                break
        else:
            handler(request)
            return
        try:
            wanted = wanted_user(request.fields)
        except APIStatusError as error:
            request.setHeader(b"x-content-type-options", b"nosniff")
            request.fail(error)
            return
        if wanted is None:
            handler(request)
        else:
            Deferred.fromCoroutine(_impersonate(request, wanted)).addErrback(request.crashed)

    async def _impersonate(request: KubeRequest, wanted: UserInfo) -> None:
        assert request.user is not None, "authentication comes before impersonation"
        for question in questions(request.user, wanted):
            verdict: Any = authorizer.authorize(question)
            if isinstance(verdict, Deferred):
                verdict = await verdict
            if request.finished or request._disconnected:
                return
            if verdict.decision is not Decision.ALLOW:
                forbid(request, question, verdict)
                return
        request.user = completed(wanted)
        handler(request)

    return impersonation


def wanted_user(fields: Mapping[bytes, Sequence[bytes]]) -> UserInfo | None:
    """
    Whom headers name; L{None} when it is nobody.

    @param fields: The header, by names in lower case.
    @raise APIStatusError: They say something of a user whom they do not name, or name several (400).
    """
    extra: dict[str, tuple[str, ...]] = {}
    for field, values in fields.items():
        if field.startswith(_EXTRA):
            key = unquote(_text(field[len(_EXTRA) :]))
            extra[key] = (*extra.get(key, ()), *map(_text, values))
    for field in (_USER, _UID):
        # The first would count in the reference, and the last for a proxy that had a look at them before.
        if len(fields.get(field, ())) > 1:
            raise APIStatusError.bad_request(f"the header {field.decode().title()} is repeated")
    name, uid = (_text(fields.get(field, (b"",))[0]) for field in (_USER, _UID))
    user = UserInfo(name, uid, tuple(map(_text, fields.get(_GROUP, ()))), extra)
    if name:
        return user
    if uid or user.groups or extra:
        raise APIStatusError.bad_request(f"requested {_in_go(user)} without impersonating a user name")
    return None


def questions(requester: UserInfo, wanted: UserInfo) -> Iterator[AuthorizerAttributes]:
    """What C{requester} must be allowed, to act as C{wanted}."""
    ask = partial(AuthorizerAttributes, requester, "impersonate", version="v1")
    account = split_service_account(wanted.name)
    if account is None:
        yield ask(resource="users", name=wanted.name)
    else:
        yield ask(resource="serviceaccounts", name=account[1], namespace=account[0])
    for group in wanted.groups:
        yield ask(resource="groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield ask(group=_AUTHENTICATION, resource="userextras", subresource=key, name=value)
    if wanted.uid:
        yield ask(group=_AUTHENTICATION, resource="uids", name=wanted.uid)


def completed(wanted: UserInfo) -> UserInfo:
    """The user with the groups that it is in without anybody saying so."""
    groups = wanted.groups
    account = split_service_account(wanted.name)
    if account is not None and not groups:
        groups = service_account_groups(account[0])
    if wanted.name == ANONYMOUS:
        if UNAUTHENTICATED not in groups:
            groups = (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return UserInfo(wanted.name, wanted.uid, groups, wanted.extra)


def _in_go(user: UserInfo) -> str:
    groups = f"[]string{_listed(user.groups)}" if user.groups else "[]string(nil)"
    extra = ", ".join(f"{quoted(key)}:[]string{_listed(values)}" for key, values in sorted(user.extra.items()))
    extra = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}"


def _listed(values: Sequence[str]) -> str:
    return "{" + ", ".join(map(quoted, values)) + "}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
