"""The C{clientConfig} of webhook configurations and definitions: a URL or a service, and its CA bundle."""

from __future__ import annotations

import base64
import binascii

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
        port = service.get("port") or 443
        return outgoing.services.settings(service["namespace"], service["name"], port, service.get("path") or "", ca=ca)
    return RESTConfig(url=client_config.get("url") or "", ca=ca, denied_networks=outgoing.denied_networks)
