"""
Authentication by an authenticating proxy, which sends the user in request headers.

@see: kubernetes, C{apiserver/pkg/authentication/request/headerrequest}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from twisted.logger import Logger
from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.identityheaders import (
    AmbiguousHeaderError,
    check_names,
    decode_field_value,
    extra_key,
    optional_field,
)
from ..api.resource import UserInfo
from ..interfaces import IAuthenticator
from .certificates import (
    CertPool,
    ClientCAProvider,
    InvalidCABundle,
    client_ca_paths,
    common_name,
    read_ca_files,
    watch_ca_files,
)
from .errors import (
    AuthenticationFailed,
    RequestRefused,
)

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

_log = Logger()

#: The standard names of these headers; they are removed before handlers see a request.
_STANDARD: Final = ("x-remote-user", "x-remote-uid", "x-remote-group")
_STANDARD_EXTRA: Final = "x-remote-extra-"


@frozen
class RequestHeaderConfig:
    """
    The names of the headers in which proxies name the user (C{--requestheader-*}), in lower case.

    @ivar extra: Prefixes of the names of extra headers.
    """

    user: tuple[bytes, ...] = ()
    uid: tuple[bytes, ...] = ()
    group: tuple[bytes, ...] = ()
    extra: tuple[bytes, ...] = ()

    @classmethod
    def from_options(cls, options: FlagValues) -> RequestHeaderConfig:
        """Return the header names of the flags C{--requestheader-*}."""
        return cls(
            *(
                tuple(name.strip().lower().encode() for name in options[f"requestheader-{flag}"])
                for flag in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix")
            )
        )

    def reserved_headers(self) -> tuple[frozenset[bytes], tuple[bytes, ...]]:
        """
        Return the headers that are removed before handlers and backends see a request.

        @return: Exact names, and prefixes of names.
        """
        exact = {*self.user, *self.uid, *self.group, *(name.encode() for name in _STANDARD)}
        prefixes = {*self.extra, _STANDARD_EXTRA.encode()}
        return frozenset(exact), tuple(sorted(prefixes))


@implementer(IAuthenticator)
class RequestHeaderAuthenticator:
    """Authenticates requests of proxies whose client certificate has a trusted CA and an allowed common name."""

    def __init__(
        self, authorities: ClientCAProvider, headers: RequestHeaderConfig, allowed: tuple[str, ...] = ()
    ) -> None:
        """
        @param authorities: The CAs of proxies.
        @param headers: The names of the headers.
        @param allowed: The allowed common names of proxies; empty for all.
        """
        self._authorities = authorities
        self._headers = headers
        self._allowed = allowed
        self._exact = frozenset((*headers.user, *headers.uid, *headers.group))

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        peer = self._authorities.verify_peer(request)
        if peer.certificate is None:
            return None
        if self._allowed:
            name = common_name(peer.certificate)
            if name not in self._allowed:
                raise AuthenticationFailed(f"x509: subject with cn={name} is not in the allowed list")
        try:
            return self._user(request.fields)
        except AmbiguousHeaderError as error:
            raise RequestRefused(f"invalid request header of a proxy: {error}") from error

    def _user(self, fields: Mapping[bytes, Sequence[bytes]]) -> UserInfo | None:
        headers = self._headers
        check_names(fields, self._exact, headers.extra)
        user = next((value for name in headers.user if (value := optional_field(fields, name))), "")
        if not user:
            return None
        uid = next((value for name in headers.uid if (value := optional_field(fields, name))), "")
        groups = [decode_field_value(name, value) for name in headers.group for value in fields.get(name, ()) if value]
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in headers.extra:
            for name, values in fields.items():
                if name.startswith(prefix):
                    key = extra_key(name, prefix)
                    extra[key] = (*extra.get(key, ()), *(decode_field_value(name, value) for value in values))
        return UserInfo(user, uid, tuple(groups), extra)


def _warn(options: FlagValues) -> None:
    for flag, kind, usual in (
        ("username-headers", "header", "X-Remote-User"),
        ("group-headers", "header", "X-Remote-Group"),
        ("extra-headers-prefix", "header prefix", "X-Remote-Extra-"),
    ):
        given = options[f"requestheader-{flag}"]
        if given and usual.lower() not in (name.lower() for name in given):
            _log.warn(
                "--requestheader-{flag} is set without specifying the standard {usual} {kind} - API aggregation will"
                " not work",
                flag=flag,
                usual=usual,
                kind=kind,
            )


def make(options: FlagValues, server: AuthenticationContext) -> RequestHeaderAuthenticator | None:
    """
    Create the authenticator of the flags C{--requestheader-*}; L{None} without them.

    @raise InvalidCABundle: The file cannot be used, or one of its CAs also issues certificates of users.
    """
    _warn(options)
    if not options["requestheader-client-ca-file"]:
        return None
    path = Path(options["requestheader-client-ca-file"])
    authorities = watch_ca_files(server, [path], "--requestheader-client-ca-file")
    allowed = options["requestheader-allowed-names"]
    if not allowed:
        users = {_bytes(one) for one in CertPool(read_ca_files(client_ca_paths(options))).certificates}
        if any(_bytes(one) in users for one in authorities.pool.certificates):
            raise InvalidCABundle(
                "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates;"
                " --requestheader-allowed-names must be specified to ensure regular client certificates cannot set"
                " authenticating proxy headers for arbitrary users"
            )
    return RequestHeaderAuthenticator(authorities, RequestHeaderConfig.from_options(options), allowed)


def _bytes(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    content: bytes = certificate.public_bytes(Encoding.DER)
    return content
