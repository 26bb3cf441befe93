"""Validation of C{clientConfig} of webhooks: the URL or the service."""

from __future__ import annotations

from ....api.errors import MAX_FIELD_ERRORS_LENGTH, invalid, required
from ....api.go.url import URLError, parse_url
from ....api.resource import JSONObject
from .fields import PORT_RANGE, ErrorList, dns_subdomain


def webhook_url(text: str, path: str, https: bool, errors: ErrorList) -> None:
    """
    Validate the URL of a webhook.

    @param text: The URL.
    @param path: The field path for errors.
    @param https: Whether the scheme must be https.
    @param errors: Receives the errors.
    """
    form = "; desired format: https://host[/path]"
    try:
        url = parse_url(text)
    except URLError as error:
        errors.append(required(path, f"url must be a valid URL: {error}{form}"))
        return
    if https and url.scheme != "https":
        errors.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not url.host:
        errors.append(invalid(path, "", f"host must be specified{form}"))
    if url.user is not None:
        errors.append(invalid(path, url.user_info, "user information is not permitted in the URL"))
    if url.fragment:
        fragment = url.fragment.decode("utf-8", "replace")
        errors.append(invalid(path, fragment, "fragments are not permitted in the URL"))
    if url.raw_query:
        errors.append(invalid(path, url.raw_query, "query parameters are not permitted in the URL"))


def webhook_service(service: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate the service of a webhook."""
    # The reference swaps the two field names.
    for missing, name in (("name", "namespace"), ("namespace", "name")):
        if not service.get(name):
            errors.append(required(f"{path}.{missing}").reworded(1, 34, f"service {missing} is required"))
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        errors.append(invalid(f"{path}.port", port, f"port is not valid: {PORT_RANGE}"))
    url_path = service.get("path") or "/"
    if url_path != "/":
        _service_path(url_path, f"{path}.path", errors)


def _service_path(url_path: str, path: str, errors: ErrorList) -> None:
    if not url_path.startswith("/"):
        errors.append(invalid(path, url_path, "must start with a '/'"))
    # Each error quotes the whole value, hence the limit.
    limit = len(errors) + 1 + MAX_FIELD_ERRORS_LENGTH // len(url_path)
    for index, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        if len(errors) > limit:
            return
        if not segment:
            errors.append(invalid(path, url_path, f"segment[{index}] may not be empty"))
            continue
        for text in dns_subdomain(segment):
            errors.append(invalid(path, url_path, f"segment[{index}]: {text}"))
