"""Where webhooks are called: their URL or service."""

from __future__ import annotations

from ....api.errors import LONGEST_CAUSES, invalid, required
from ....api.go.url import URLError, parse_url
from ....api.resource import JSONObject
from .fields import PORT_RANGE, Causes, dns_subdomain


def webhook_url(text: str, path: str, https: bool, causes: Causes) -> None:
    """The address of a webhook."""
    form = "; desired format: https://host[/path]"
    try:
        url = parse_url(text)
    except URLError as error:
        causes.append(required(path, f"url must be a valid URL: {error}{form}"))
        return
    if https and url.scheme != "https":
        causes.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not url.host:
        causes.append(invalid(path, "", f"host must be specified{form}"))
    if url.user is not None:
        causes.append(invalid(path, url.user_info, "user information is not permitted in the URL"))
    if url.fragment:
        shown = url.fragment.decode("utf-8", "replace")
        causes.append(invalid(path, shown, "fragments are not permitted in the URL"))
    if url.raw_query:
        causes.append(invalid(path, url.raw_query, "query parameters are not permitted in the URL"))


def webhook_service(service: JSONObject, path: str, causes: Causes) -> None:
    """The service of a webhook."""
    # The reference mistakes the one for the other.
    for told, name in (("name", "namespace"), ("namespace", "name")):
        if not service.get(name):
            causes.append(required(f"{path}.{told}"))
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        causes.append(invalid(f"{path}.port", port, f"port is not valid: {PORT_RANGE}"))
    where = service.get("path") or "/"
    if where != "/":
        _service_path(where, f"{path}.path", causes)


def _service_path(where: str, path: str, causes: Causes) -> None:
    if not where.startswith("/"):
        causes.append(invalid(path, where, "must start with a '/'"))
    # Each cause quotes all of it: beyond this nobody is told of them.
    most = len(causes) + 1 + LONGEST_CAUSES // len(where)
    for index, segment in enumerate(where[1:].removesuffix("/").split("/")):
        if len(causes) > most:
            return
        if not segment:
            causes.append(invalid(path, where, f"segment[{index}] may not be empty"))
            continue
        for text in dns_subdomain(segment):
            causes.append(invalid(path, where, f"segment[{index}]: {text}"))
