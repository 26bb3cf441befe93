"""A client that adds the trace context to its calls, where requests are traced."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from ..logs.redaction import redact_uri
from ..tracing.spans import (
    CLIENT,
    Value,
    current,
)
from .httpclient import (
    Response,
    WebhookClient,
)


class TracedClient(WebhookClient):
    """Client whose calls during a request have a span and a C{traceparent} header."""

    async def _call(
        self, method: str, url: str, fields: dict[bytes, list[bytes]], body: bytes, timeout: float, **options: bool
    ) -> Response:
        parent = current.get()
        if parent is None:
            return await super()._call(method, url, fields, body, timeout, **options)
        with parent.child(f"HTTP {method}", span_attributes(method, url) if parent.recording else None, CLIENT) as span:
            fields = fields | {name: [value] for name, value in span.propagation_headers()}
            response = await super()._call(method, url, fields, body, timeout, **options)
            span.set_attribute("http.response.status_code", response.code)
            if response.code >= 400:
                span.set_error(str(response.code))
            return response


def span_attributes(method: str, url: str) -> dict[str, Value]:
    """Return the attributes of a call's span; they do not include the identity of the caller."""
    parts = urlsplit(url)
    url_without_user = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return {
        "http.request.method": method,
        "url.full": redact_uri(url_without_user.encode()),
        "server.address": parts.hostname or "",
        "server.port": parts.port or (443 if parts.scheme == "https" else 80),
    }
