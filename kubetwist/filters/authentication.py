"""Who sends a request; nobody unknown gets past this, and neither do the credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.errors import APIStatusError
from ..authentication.bearer import without_token
from ..authentication.errors import AuthenticationFailed
from ..interfaces import IAuthenticator

if TYPE_CHECKING:
    from ..api.resource import UserInfo
    from ..server.site import Handler, KubeRequest

_log = Logger()


def with_authentication(
    handler: Handler, authenticator: IAuthenticator, private: tuple[frozenset[bytes], tuple[bytes, ...]]
) -> Handler:
    """
    Set C{request.user}, or answer 401.

    @param private: Fields that only authenticators may see, and what the names of others begin with: as
        L{ProxyHeaders.private<kubetwist.authentication.frontproxy.ProxyHeaders.private>} has it.
    """
    authenticate = authenticator.authenticate
    exact, prefixes = private

    def known(request: KubeRequest, user: UserInfo) -> None:
        request.user = user
        fields = request.fields
        fields.pop(b"authorization", None)
        protocols = fields.get(b"sec-websocket-protocol")
        if protocols is not None:
            fields[b"sec-websocket-protocol"] = without_token(protocols)
        for name in fields:
            if name in exact or name.startswith(prefixes):
                request.fields = {
                    name: values
                    for name, values in fields.items()
                    if name not in exact and not name.startswith(prefixes)
                }
                break
        handler(request)

    def authentication(request: KubeRequest) -> None:
        try:
            user = authenticate(request)
        except AuthenticationFailed as error:
            _refuse(request, error)
            return
        if isinstance(user, Deferred):
            user.addCallbacks(_continue, _failed, callbackArgs=(request,), errbackArgs=(request,))
            user.addErrback(request.crashed)
        elif user is None:
            _refuse(request, None)
        else:
            known(request, user)

    def _continue(user: UserInfo | None, request: KubeRequest) -> None:
        if request.finished or request._disconnected:
            return
        if user is None:
            _refuse(request, None)
        else:
            known(request, user)

    return authentication


def _failed(failure: Failure, request: KubeRequest) -> None:
    failure.trap(AuthenticationFailed)
    _refuse(request, failure.value)


def _refuse(request: KubeRequest, error: BaseException | None) -> None:
    if error is not None:
        _log.info("unable to authenticate a request ({audit_id}): {why}", why=str(error), audit_id=request.audit_id)
    request.fail(APIStatusError.unauthorized())
