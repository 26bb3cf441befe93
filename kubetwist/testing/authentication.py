"""Unit tests of authenticators: a header or certificates in, a user out; no server is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen
from cryptography import x509
from OpenSSL.crypto import X509

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from ..api.resource import UserInfo
from ..authentication.errors import AuthenticationFailed
from ..authentication.union import AuthenticatorUnion
from ..interfaces import IAuthenticationRequest, IAuthenticator, IAuthenticatorFactory, IClientConnection
from ..server.plugins import checked
from ._plugincontext import check_type, make_context, make_plugin
from .memory import MemoryServer, Objects


@implementer(IAuthenticationRequest, IClientConnection)
class StubRequest:
    """
    A request with a header and client certificates, as authenticators get it.

    @ivar warnings: The texts of C{Warning} headers.
    @ivar annotations: The annotations of the audit event.
    """

    audit_id = "00000000-0000-0000-0000-000000000000"
    client: Any = None

    def __init__(
        self,
        headers: Mapping[str, str | Sequence[str]] | None = None,
        certificates: Iterable[bytes | str | x509.Certificate] = (),
        method: str = "GET",
        path: str = "/api",
    ) -> None:
        """
        @param headers: The header fields: a value, or a list of values of repeated fields.
        @param certificates: The certificate of the client, and its chain: PEM, or L{x509.Certificate}. The TLS
            connection has verified them already.
        @param method: The HTTP method.
        @param path: The path, without the query.
        """
        self.method = method.encode()
        self.path = path.encode()
        self.fields = {
            name.lower().encode(): [value.encode() for value in ([values] if isinstance(values, str) else values)]
            for name, values in (headers or {}).items()
        }
        self.signed_in = False
        self.connection = self
        self.remembered: dict[object, Any] = {}
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}
        self._certificates = [_certificate(one) for one in certificates]

    def header(self, name: bytes) -> bytes | None:
        """See L{IAuthenticationRequest.header}."""
        values = self.fields.get(name)
        return values[0] if values else None

    def warn(self, text: str, agent: str = "-", code: int = 299) -> None:
        """Record a warning."""
        self.warnings.append(text)

    def annotate(self, key: str, value: str, level: str) -> None:
        """Record an annotation."""
        self.annotations[key] = value

    def peer_certificates(self) -> Sequence[X509]:
        """See L{IClientConnection.peer_certificates}."""
        return self._certificates


def _certificate(certificate: bytes | str | x509.Certificate) -> X509:
    if isinstance(certificate, str):
        certificate = certificate.encode()
    if isinstance(certificate, bytes):
        certificate = x509.load_pem_x509_certificate(certificate)
    return X509.from_cryptography(certificate)


@frozen
class AuthenticationOutcome:
    """
    The result of an authentication.

    @ivar user: The user, with the group C{system:authenticated}; L{None} without one.
    @ivar error: The reason for the log, if credentials are invalid; L{None} if there were none.
    @ivar request: The request.
    """

    user: UserInfo | None
    error: AuthenticationFailed | None
    request: StubRequest

    @property
    def code(self) -> int:
        """Return the status of the response if no further authenticator knows the user: 401; 0 with a user."""
        return 401 if self.user is None else 0


@implementer(IAuthenticator)
class _CheckedAuthenticator:
    """Checks the types of an authenticator's results."""

    def __init__(self, authenticator: IAuthenticator) -> None:
        self._authenticator = authenticator

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """See L{IAuthenticator.authenticate}."""
        method = f"{type(self._authenticator).__name__}.authenticate"
        user: UserInfo | Deferred[UserInfo | None] | None = check_type(
            self._authenticator.authenticate(request), (UserInfo, type(None)), method
        )
        return user


class AuthenticatorHarness:
    """
    One authenticator, called as the server calls it; there is no anonymous access.

    @ivar server: The objects that the authenticator can read.
    @ivar authenticator: The authenticator; L{None} if the flags do not enable it.
    """

    def __init__(
        self,
        plugin: IAuthenticator | IAuthenticatorFactory | Callable[..., IAuthenticator | None] | str,
        *flags: str,
        objects: Objects = (),
        clock: IReactorTime | None = None,
    ) -> None:
        """
        @param plugin: An authenticator, a factory, the function C{make(options, server)}, or the name of an installed
            authenticator.
        @param flags: Flags of C{twist kubeapi} for C{options}.
        @param objects: Objects for C{server.stores}: YAML, a file, or dictionaries.
        @param clock: The reactor; by default a clock that L{authenticate} advances while the authenticator waits.
        @raise StartError: The server would not start with the authenticator.
        @raise ValueError: The function C{make} rejects the options, or no such authenticator is installed.
        """
        self.server = MemoryServer(objects, clock=clock)
        context = make_context(flags, self.server)
        authenticator = make_plugin(plugin, IAuthenticatorFactory, "authenticator", context)
        if authenticator is not None:
            checked(authenticator, IAuthenticator, "authenticator", type(authenticator).__name__)
        self.authenticator: IAuthenticator | None = authenticator
        self.server.start()
        self._union = AuthenticatorUnion([] if authenticator is None else [_CheckedAuthenticator(authenticator)])

    def authenticate(
        self,
        headers: Mapping[str, str | Sequence[str]] | None = None,
        certificates: Iterable[bytes | str | x509.Certificate] = (),
        **request: str,
    ) -> AuthenticationOutcome:
        """
        Return the user of a request. The clock advances while the authenticator waits for it.

        @param headers: See L{StubRequest}.
        @param certificates: See L{StubRequest}.
        @param request: The further arguments of L{StubRequest}.
        @raise NoResult: The authenticator waits for something else, such as a connection: use L{authenticate_async}.
        """
        return self.server.run(self.authenticate_async(StubRequest(headers, certificates, **request)))

    async def authenticate_async(self, request: StubRequest) -> AuthenticationOutcome:
        """
        Return the user of a request.

        @raise TypeError: The authenticator returned something other than a user or L{None}.
        @raise Exception: The exceptions of the authenticator, which the server answers with an internal error.
        """
        try:
            user = self._union.authenticate(request)
            if isinstance(user, Deferred):
                user = await user
        except AuthenticationFailed as error:
            return AuthenticationOutcome(None, error, request)
        return AuthenticationOutcome(user, None, request)
