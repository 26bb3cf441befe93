"""Tests of L{kubetwist.filters.denials}."""

from __future__ import annotations

from typing import Any

from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.filters.denials import DenialLog
from kubetwist.logs.ratelimit import LINES_PER_SECOND
from kubetwist.logs.verbosity import DEBUG
from tests.http.harness import Client, Everyone, filtered_site


class Refuse:
    """An authorizer without an opinion."""

    name = "Refuse"

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def authorize(self, attributes: Any) -> Verdict:
        """Return a verdict with the reason."""
        return Verdict(Decision.NO_OPINION, self._reason)


class FakeRequest:
    """A request with an audit id."""

    audit_id = "id-1"


class DenialTests(SynchronousTestCase):
    """Log lines of denied requests."""

    def denial(self, method: str, path: str, reason: str = "because") -> str:
        """Return the log line of a request."""
        events: list[LogEvent] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        user = UserInfo("eve\n", groups=("a", "b"))
        client = Client(filtered_site(authenticator=Everyone(user), authorizer=Refuse(reason)))
        answer = client.request(method, path, Audit_Id="id-1", Authorization="Bearer secret-token")
        self.assertEqual(answer.code, 403)
        (line,) = [formatEvent(event) for event in events if "audit_id" in event]
        self.assertNotIn("secret-token", repr(events))
        return line

    def test_resource(self) -> None:
        """The line names user, groups, verb, resource, subresource, name and scope, and the audit id."""
        start = 'forbidden (id-1): nothing allows user "eve\\n" with groups ["a" "b"] to '
        self.assertEqual(
            self.denial("PUT", "/apis/apps/v1/namespaces/ns/deployments/web/scale"),
            f'{start}"update" the resource "deployments.apps/scale" named "web" in the namespace "ns" (because)',
        )
        self.assertEqual(
            self.denial("GET", "/api/v1/nodes"), f'{start}"list" the resource "nodes" cluster-wide (because)'
        )

    def test_one_line(self) -> None:
        """Line breaks in reasons and user names do not start another line."""
        line = self.denial("GET", "/metrics", "one\ntwo\r\x85\u2028 'x'")
        self.assertTrue(line.endswith("(one; two\\r\\x85\\u2028 'x')"), line)

    def test_path(self) -> None:
        """The line of a non-resource request names verb and path."""
        self.assertTrue(self.denial("GET", "/metrics").endswith(' to "get" the path "/metrics" (because)'))


class DenialLogTests(SynchronousTestCase):
    """Rate limits of denials."""

    def setUp(self) -> None:
        """Observe the log."""
        self.events: list[LogEvent] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)
        self.now = 0.0
        self.log = DenialLog(lambda: self.now)

    def deny(self, user: str, path: str) -> None:
        """Log that C{user} may not GET C{path}."""
        attributes = AuthorizerAttributes(UserInfo(user), "get", path=path, is_resource_request=False)
        self.log.log(FakeRequest(), attributes, Verdict(Decision.NO_OPINION))  # type: ignore[arg-type]

    def test_repeated(self) -> None:
        """The same denial of a user is logged once a minute, other denials at once."""
        for _ in range(100):
            self.deny("eve", "/readyz")
        self.deny("eve", "/livez")
        self.deny("mallory", "/readyz")
        self.assertEqual(len(self.events), 3)
        self.now = 60.0
        self.deny("eve", "/readyz")
        self.assertEqual(len(self.events), 4)

    def test_rate_limit(self) -> None:
        """Different denials are limited per second, and the number of suppressed ones is logged."""
        for index in range(LINES_PER_SECOND + 7):
            self.deny("eve", f"/{index}")
        self.assertEqual(len(self.events), LINES_PER_SECOND)
        self.now = 1.0
        self.deny("eve", "/more")
        self.assertEqual(formatEvent(self.events[-2]), "rate limit: 7 denied requests were not logged")

    def test_anonymous(self) -> None:
        """Denials of anonymous clients are logged with -v=4 only."""
        self.deny("system:anonymous", "/readyz")
        self.deny("eve", "/readyz")
        self.assertEqual([event["verbosity"] for event in self.events], [DEBUG, 0])
