"""The C{clientConfig} of webhook configurations and definitions: a URL or a service, and its CA bundle."""

from __future__ import annotations

import base64
import binascii
import posixpath
from urllib.parse import urlsplit

from ..api.resource import JSONObject
from .errors import InvalidRESTConfig
from .factory import ClientFactory
from .restconfig import RESTConfig


def rest_config_for(client_config: JSONObject, outgoing: ClientFactory) -> RESTConfig:
    """
    Return the settings for the target of a C{WebhookClientConfig}.

    @raise InvalidRESTConfig: The configuration is invalid; validation should have rejected it.
    """
    bundle = client_config.get("caBundle") or ""
    try:
        ca = base64.b64decode(bundle, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRESTConfig(f"the caBundle is no base64: {error}") from None
    # A CA bundle of white space alone selects the system's authorities.
    ca = ca if ca.strip() else b""
    service = client_config.get("service")
    if service:
        port, path = service.get("port") or 443, clean_path(service.get("path") or "")
        return outgoing.services.settings(service["namespace"], service["name"], port, path, ca=ca)
    url = client_config.get("url") or ""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidRESTConfig(f"the url cannot be parsed: {error}") from None
    url = parts._replace(path=clean_path(parts.path)).geturl()
    return RESTConfig(url=url, ca=ca, denied_networks=outgoing.denied_networks)


def clean_path(path: str) -> str:
    """
    Return a path as clients of the reference request it (client-go/rest/request.go: NewRequest): C{/a} for C{//./a/}.

    envtest writes URLs with two slashes for webhooks of services.
    """
    return posixpath.normpath("/" + path.lstrip("/"))
