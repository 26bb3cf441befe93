"""Tests for L{kubetwist.registry.generic.validation.webhookclient.webhook_url}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import Cause
from kubetwist.registry.generic.validation.webhookclient import webhook_url

FORM = "; desired format: https://host[/path]"


class WebhookURLTests(SynchronousTestCase):
    """What is said of the addresses of webhooks."""

    def told(self, text: str) -> list[str]:
        """What is wrong with an address."""
        causes: list[Cause] = []
        webhook_url(text, "url", True, causes)
        self.assertEqual({cause.field for cause in causes} - {"url"}, set())
        return [cause.message for cause in causes]

    def test_good(self) -> None:
        """A host is enough, with a path or a port, or a port alone."""
        for text in ("https://example.com", "https://example.com:8443/a/b", "https://[::1]/", "https://:8443"):
            self.assertEqual(self.told(text), [])

    def test_no_url(self) -> None:
        """What is no URL is told of in the words of C{net/url}."""
        for text, why in (
            (":::", "missing protocol scheme"),
            ("https://a b/", 'invalid character " " in host name'),
            ("https://a:b/", 'invalid port ":b" after host'),
            ("https://a/%zz", 'invalid URL escape "%zz"'),
        ):
            expected = f'Required value: url must be a valid URL: parse "{text}": {why}{FORM}'
            self.assertEqual(self.told(text), [expected])

    def test_too_much(self) -> None:
        """Users, fragments and queries are none of a webhook's; they are shown, and users escaped."""
        self.assertEqual(
            self.told("http://us%20er:p@x?a=b#c%20d"),
            [
                f"Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}",
                'Invalid value: "us%20er:p": user information is not permitted in the URL',
                'Invalid value: "c d": fragments are not permitted in the URL',
                'Invalid value: "a=b": query parameters are not permitted in the URL',
            ],
        )

    def test_no_host(self) -> None:
        """A scheme and a path are not enough."""
        self.assertEqual(self.told("https:///a"), [f'Invalid value: "": host must be specified{FORM}'])
