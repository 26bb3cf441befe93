"""Tests for L{kubetwist.registry.generic.validation.webhookclient.webhook_url}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import MAX_FIELD_ERRORS_LENGTH, FieldError
from kubetwist.registry.generic.validation.webhookclient import webhook_url
from tests.registry.strategytools import change_problems, problems

FORM = "; desired format: https://host[/path]"


class WebhookURLTests(SynchronousTestCase):
    """Tests for the URLs of webhooks."""

    def url_errors(self, text: str) -> list[str]:
        """Return the errors of a URL."""
        errors: list[FieldError] = []
        webhook_url(text, "url", True, errors)
        self.assertEqual({cause.field for cause in errors} - {"url"}, set())
        return [cause.message for cause in errors]

    def test_valid(self) -> None:
        """A host is sufficient, with optional path and port."""
        for text in ("https://example.com", "https://example.com:8443/a/b", "https://[::1]/", "https://:8443"):
            self.assertEqual(self.url_errors(text), [])

    def test_invalid_url(self) -> None:
        """An invalid URL is rejected with the message of C{net/url}."""
        for text, reason in (
            (":::", "missing protocol scheme"),
            ("https://a b/", 'invalid character " " in host name'),
            ("https://a:b/", 'invalid port ":b" after host'),
            ("https://a/%zz", 'invalid URL escape "%zz"'),
        ):
            expected = f'Required value: url must be a valid URL: parse "{text}": {reason}{FORM}'
            self.assertEqual(self.url_errors(text), [expected])

    def test_forbidden_components(self) -> None:
        """Users, fragments and queries are forbidden; the message shows them, with escaped users."""
        self.assertEqual(
            self.url_errors("http://us%20er:p@x?a=b#c%20d"),
            [
                f"Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}",
                'Invalid value: "us%20er:p": user information is not permitted in the URL',
                'Invalid value: "c d": fragments are not permitted in the URL',
                'Invalid value: "a=b": query parameters are not permitted in the URL',
            ],
        )

    def test_no_host(self) -> None:
        """A scheme and a path are not sufficient."""
        self.assertEqual(self.url_errors("https:///a"), [f'Invalid value: "": host must be specified{FORM}'])


ADMISSION = "admissionregistration.k8s.io"


class WebhookTests(SynchronousTestCase):
    """Tests for webhook configurations."""

    WEBHOOK: ClassVar[dict[str, Any]] = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com"},
    }

    def test_selectors_of_stored_objects(self) -> None:
        """Invalid label values are accepted in selectors of stored objects that had some."""
        kind = "ValidatingWebhookConfiguration"
        bad = {
            **self.WEBHOOK,
            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]},
        }
        path = "webhooks[0].objectSelector.matchExpressions[0].values[0]"
        (error,) = problems(ADMISSION, kind, webhooks=[bad])
        self.assertIn(f'{path}: Invalid value: "-": a valid label must be', error)
        self.assertEqual(change_problems(ADMISSION, kind, {"webhooks": [bad]}, {"webhooks": [bad]}), [])
        (error,) = change_problems(ADMISSION, kind, {"webhooks": [self.WEBHOOK]}, {"webhooks": [bad]})
        self.assertIn(path, error)

    def service_errors(self, path: str) -> list[str]:
        """Return the errors of a service's path."""
        service = {"name": "a", "namespace": "b", "path": path}
        webhook = {**self.WEBHOOK, "clientConfig": {"service": service}}
        return problems(ADMISSION, "MutatingWebhookConfiguration", webhooks=[webhook])

    def test_service_paths(self) -> None:
        """An empty path is the root; each segment of other paths is a name."""
        path = "webhooks[0].clientConfig.service.path: Invalid value"
        self.assertEqual(self.service_errors(""), [])
        self.assertEqual(self.service_errors("//"), [f'{path}: "//": segment[0] may not be empty'])
        self.assertEqual(
            self.service_errors("ab//c"),
            [f"{path}: \"ab//c\": must start with a '/'", f'{path}: "ab//c": segment[1] may not be empty'],
        )

    def test_nameless_service(self) -> None:
        """For a service without a name the namespace is reported as missing, and vice versa."""
        again = {"reinvocationPolicy": "Sometimes"}
        webhook = {**self.WEBHOOK, **again, "clientConfig": {"service": {"namespace": "n"}}}
        errors = problems(ADMISSION, "MutatingWebhookConfiguration", webhooks=[webhook])
        self.assertEqual(
            [one.partition(":")[0] for one in errors],
            ["webhooks[0].reinvocationPolicy", "webhooks[0].clientConfig.service.namespace"],
        )
        webhook["clientConfig"] = {"service": {"name": "n"}}
        errors = problems(ADMISSION, "MutatingWebhookConfiguration", webhooks=[webhook])
        self.assertEqual(errors[1], "webhooks[0].clientConfig.service.name: Required value")

    def test_many_segments(self) -> None:
        """Thousands of empty path segments give few errors."""
        path = "/" * 10_000
        self.assertTrue(0 < len(self.service_errors(path)) <= 3 + MAX_FIELD_ERRORS_LENGTH // len(path))
