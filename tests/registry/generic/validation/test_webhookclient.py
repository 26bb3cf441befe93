"""Tests of L{kubetwist.registry.generic.validation.webhookclient}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import MAX_FIELD_ERRORS_LENGTH, FieldError
from kubetwist.registry.generic.validation.webhookclient import webhook_service, webhook_url


def url_messages(text: str, https: bool = True) -> list[str]:
    """Return the errors of a URL."""
    causes: list[FieldError] = []
    webhook_url(text, "u", https, causes)
    return [cause.message for cause in causes]


def service_fields(**service: Any) -> list[str]:
    """Return the fields of a service with errors."""
    causes: list[FieldError] = []
    webhook_service({"name": "s", "namespace": "n", "port": 443, **service}, "s", causes)
    return [cause.field for cause in causes]


class URLTests(SynchronousTestCase):
    """Tests of L{webhook_url}."""

    def test_urls(self) -> None:
        """A URL must have the scheme https and a host, and only a path after it."""
        self.assertEqual(url_messages("https://example.com:8443/hook"), [])
        for text, part in (
            ("http://example.com", "'https' is the only allowed URL scheme"),
            ("https:///hook", "host must be specified"),
            ("https://u:p@example.com", "user information is not permitted"),
            ("https://example.com/#f", "fragments are not permitted"),
            ("https://example.com/?q=1", "query parameters are not permitted"),
            ("https://exa mple.com", "url must be a valid URL"),
        ):
            [message] = url_messages(text)
            self.assertIn(part, message)

    def test_plain(self) -> None:
        """The scheme http is accepted if https is not required."""
        self.assertEqual(url_messages("http://example.com", https=False), [])


class ServiceTests(SynchronousTestCase):
    """Tests of L{webhook_service}."""

    def test_parts(self) -> None:
        """A service needs a name, a namespace and a valid port; as in the reference, errors swap the names."""
        self.assertEqual(service_fields(path="/a/b.c"), [])
        self.assertEqual(service_fields(name=""), ["s.namespace"])
        self.assertEqual(service_fields(namespace=""), ["s.name"])
        self.assertEqual(service_fields(port=0), ["s.port"])

    def test_paths(self) -> None:
        """A path begins with a slash and has no empty segments."""
        for path in ("a", "//", "/a//b", "/A b"):
            self.assertEqual(set(service_fields(path=path)), {"s.path"}, path)

    def test_bounded(self) -> None:
        """The number of errors of a long path is limited."""
        path = "/" + "//" * 20_000
        self.assertLess(len(service_fields(path=path)), MAX_FIELD_ERRORS_LENGTH // len(path) + 5)
