"""
Acting as somebody else, by those who may.

@see: kubernetes, C{apiserver/pkg/endpoints/filters/impersonation}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from twisted.internet.defer import Deferred

from ..api.errors import APIStatusError
from ..api.go.quote import quoted
from ..api.identityheaders import OddHeader, check_names, extra_key, single, text
from ..api.resource import UserInfo
from ..http.request import Handler, KubeRequest
from ..interfaces import IAuthorizer
from .authorization import attributes_of, forbid
from .denials import DenialLog
from .impersonationmodes import Modes, Refused

#: What such headers begin with; gateways may make the second of the first, and others the first of the second.
_PREFIXES: Final = (b"impersonate-", b"impersonate_")
_USER: Final = b"impersonate-user"
_UID: Final = b"impersonate-uid"
_GROUP: Final = b"impersonate-group"
_EXTRA: Final = b"impersonate-extra-"
_EXACT: Final = frozenset((_USER, _UID, _GROUP))


def with_impersonation(handler: Handler, authorizer: IAuthorizer, constrained: bool, denials: DenialLog) -> Handler:
    """
    Set the user of a request to the one in its C{Impersonate-} headers, if the client may impersonate that user.

    Answer 400 to headers without a user or with several meanings, and 403 without permission. Later filters find the
    impersonated user in C{request.user} and the client in C{request.impersonator}; the headers are removed.

    @param handler: The next handler.
    @param authorizer: Decides whether the client may impersonate.
    @param constrained: Whether constrained impersonation is enabled.
    @param denials: Logs refused impersonations.
    """
    modes = Modes(authorizer, constrained)

    def impersonation(request: KubeRequest) -> None:
        for name in request.fields:
            if name.startswith(_PREFIXES):
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
        try:
            found = await modes.find(attributes_of(request), wanted)
        except Refused as refused:
            if not request.over:
                forbid(request, refused.question, refused.verdict, denials)
            return
        if request.over:
            return
        request.impersonator, request.user = request.user, found.user
        request.impersonation_constraint = found.constraint
        request.fields = {name: values for name, values in request.fields.items() if not name.startswith(_PREFIXES)}
        handler(request)

    return impersonation


def wanted_user(fields: Mapping[bytes, Sequence[bytes]]) -> UserInfo | None:
    """
    Whom headers name; L{None} when it is nobody.

    @param fields: The header, by names in lower case.
    @raise APIStatusError: They say something of a user whom they do not name, or can be read in several ways: of two
        names the first would count in the reference, and the last for a proxy that had a look at them before (400).
    """
    extra: dict[str, tuple[str, ...]] = {}
    try:
        check_names(fields, _EXACT, (_EXTRA,))
        for field, values in fields.items():
            if field.startswith(_EXTRA):
                key = extra_key(field, _EXTRA)
                extra[key] = (*extra.get(key, ()), *(text(field, value) for value in values))
        groups = tuple(text(_GROUP, value) for value in fields.get(_GROUP, ()))
        user = UserInfo(single(fields, _USER), single(fields, _UID), groups, extra)
    except OddHeader as error:
        raise APIStatusError.bad_request(str(error)) from error
    if user.name:
        return user
    if user.uid or user.groups or extra:
        raise APIStatusError.bad_request(f"requested {_in_go(user)} without impersonating a user name")
    return None


def _in_go(user: UserInfo) -> str:
    groups = f"[]string{_listed(user.groups)}" if user.groups else "[]string(nil)"
    extra = ", ".join(f"{quoted(key)}:[]string{_listed(values)}" for key, values in sorted(user.extra.items()))
    extra = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}"


def _listed(values: Sequence[str]) -> str:
    return "{" + ", ".join(map(quoted, values)) + "}"
