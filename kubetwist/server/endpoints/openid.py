"""OpenID Connect Discovery documents, with which third parties verify service account tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import orjson

from klein import Klein
from twisted.logger import Logger

from ...api.flagvalues import FlagValues
from ...api.jsontypes import JSONObject
from ...http.negotiation import check_router
from ...http.request import KubeRequest
from ...registry.core.serviceaccount.tokenkeys import TokenKey
from ...resources.mux import DelegatingMux
from ...resources.routing import RoutedApp, add_route, new_app, path_not_found

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"

_log = Logger()


class BadIssuer(ValueError):
    """The issuer cannot have discovery documents."""


class PublicDocument:
    """A document that is created at the first request, and that clients may cache for an hour."""

    def __init__(self, path: str, media_type: str, make: Callable[[], JSONObject]) -> None:
        self._path = path
        self._media_type = media_type
        self._make = make
        self._body: bytes | None = None

    def forget(self) -> None:
        """Drop the document; the next request creates it."""
        self._body = None

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        add_route(app, "GET", self._path, self._respond)
        add_route(app, None, f"{self._path}/<rest:path>", path_not_found)
        return app

    def _respond(self, request: KubeRequest) -> None:
        check_router(request.header(b"accept"), (self._media_type,))
        if self._body is None:
            self._body = orjson.dumps(self._make())
        request.setHeader(b"Cache-Control", b"public, max-age=3600")
        request.respond(200, self._body, self._media_type.encode())


def check_issuer(issuer: str, jwks_uri: str) -> None:
    """
    Check that clients can look up the documents of an issuer.

    @raise BadIssuer: The text is the reason.
    """
    if not issuer:
        raise BadIssuer("empty issuer URL")
    for name, url in (("issuer URL", issuer), ("jwksURI", jwks_uri)):
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise BadIssuer(f"{name} cannot be read: {error}") from error
        if url and parts.scheme != "https":
            raise BadIssuer(f"{name} must use https scheme, got: {url}")
        if name == "issuer URL" and (parts.query or parts.fragment):
            raise BadIssuer(f"issuer URL may not include a query or a fragment, got: {url}")


def serve_documents(
    mux: DelegatingMux, options: FlagValues, keys: Sequence[TokenKey], address: Callable[[], str]
) -> Callable[[], None]:
    """
    Register both documents, if the issuer can have them.

    @param address: Returns the host and port of this server when it listens.
    @return: To be called when C{keys} has changed.
    """
    issuer = options["service-account-issuer"][0]
    jwks_uri = options["service-account-jwks-uri"]
    try:
        check_issuer(issuer, jwks_uri)
    except BadIssuer as error:
        _log.warn("OpenID discovery of the service account issuer is disabled: {reason}", reason=str(error))
        return lambda: None

    def configuration() -> JSONObject:
        return {
            "issuer": issuer,
            "jwks_uri": jwks_uri or f"https://{address()}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in keys}),
        }

    def key_set() -> JSONObject:
        return {"keys": [key.as_jwk() for key in keys]}

    documents = [
        PublicDocument(CONFIGURATION, "application/json", configuration),
        PublicDocument(KEYS, "application/jwk-set+json", key_set),
    ]
    for path, document in zip((CONFIGURATION, KEYS), documents, strict=True):
        mux.handle_prefix(path, RoutedApp(document.make_app))

    def forget() -> None:
        for document in documents:
            document.forget()

    return forget
