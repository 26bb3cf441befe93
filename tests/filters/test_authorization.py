"""Tests for what L{kubetwist.filters.authorization} tells the log."""

from __future__ import annotations

import json
from typing import Any

from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.filters import authorization
from kubetwist.filters.denials import DenialLog
from kubetwist.logs.ratelimit import LINES_PER_SECOND
from kubetwist.logs.verbosity import DEBUG
from tests.http.harness import Client, Everyone, filtered_site


class Refuse:
    """Has no opinion."""

    name = "Refuse"

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def authorize(self, attributes: Any) -> Verdict:
        """Say why."""
        return Verdict(Decision.NO_OPINION, self._reason)


class DenialTests(SynchronousTestCase):
    """A denial is one line in the log that says what was looked for."""

    def denial(self, method: str, path: str, reason: str = "because") -> str:
        """The line for a request."""
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
        """Reasons, however many there are and whatever names are in them, do not begin another line."""
        line = self.denial("GET", "/metrics", "one\ntwo\r\x85\u2028 'x'")
        self.assertTrue(line.endswith("(one; two\\r\\x85\\u2028 'x')"), line)

    def test_path(self) -> None:
        """For a path that is no resource it names verb and path."""
        self.assertTrue(self.denial("GET", "/metrics").endswith(' to "get" the path "/metrics" (because)'))


class DenialLogTests(SynchronousTestCase):
    """Repeated denials are rate limited in the log."""

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
        self.log.log(Asked(), attributes, Verdict(Decision.NO_OPINION))  # type: ignore[arg-type]

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


class Asked:
    """Stands for a request."""

    audit_id = "id-1"


class Verbs:
    """Allows some verbs, and remembers what it was asked."""

    name = "Verbs"

    def __init__(self, *verbs: str) -> None:
        self._verbs = verbs
        self.asked: list[AuthorizerAttributes] = []

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Look at the verb alone."""
        self.asked.append(attributes)
        return Verdict(Decision.ALLOW if attributes.verb in self._verbs else Decision.NO_OPINION)


class QuestionTests(SynchronousTestCase):
    """What authorizers are asked."""

    def ask(self, authorizer: Verbs, method: str, path: str) -> int:
        """The status of a request of somebody."""
        client = Client(filtered_site(authenticator=Everyone(UserInfo("eve")), authorizer=authorizer))
        return client.request(method, path).code

    def answer(self, authorizer: Verbs, method: str, path: str) -> Any:
        """What is answered to such a request."""
        client = Client(filtered_site(authenticator=Everyone(UserInfo("eve")), authorizer=authorizer))
        return json.loads(client.request(method, path).body)

    def test_selectors(self) -> None:
        """Authorizers see what selectors narrow a collection to, as far as anybody understands it."""
        authorizer = Verbs("list", "watch", "get", "deletecollection")
        query = "fieldSelector=spec.nodeName%3Da,status.phase!%3DFailed&labelSelector=app%20in%20(x,y)"
        for method, path, narrowed in (
            ("GET", f"/api/v1/pods?{query}", True),
            ("GET", f"/api/v1/pods?watch=1&{query}", True),
            ("DELETE", f"/api/v1/namespaces/ns/pods?{query}", True),
            ("GET", f"/api/v1/namespaces/ns/pods/x?{query}", False),
            ("GET", f"/api/v1/watch/pods?{query}", False),
            ("GET", "/api/v1/pods?fieldSelector=oops&labelSelector=(", False),
            ("GET", "/api/v1/pods", False),
        ):
            self.assertEqual(self.ask(authorizer, method, path), 200, path)
            asked = authorizer.asked[-1]
            fields = (("spec.nodeName", "a", True), ("status.phase", "Failed", False)) if narrowed else ()
            self.assertEqual(asked.field_terms, fields, path)
            self.assertEqual([str(one) for one in asked.label_terms], ["app in (x,y)"] if narrowed else [])

    def test_selectors_are_parsed_when_needed(self) -> None:
        """The selectors of a request are not parsed before an authorizer reads them."""
        parsed: list[str] = []

        def parse(text: str) -> tuple[Any, ...]:
            parsed.append(text)
            return ()

        self.patch(authorization, "parse_field_selector", parse)
        self.patch(authorization, "_label_terms", parse)
        keys = ",".join(f"k{number}%20in%20(a,b)" for number in range(3000))
        path = f"/api/v1/pods?labelSelector={keys}&fieldSelector=a%3Db"
        authorizer = Verbs("get")
        self.assertEqual(self.ask(authorizer, "GET", path), 403)
        self.assertEqual(parsed, [])
        self.assertEqual(list(authorizer.asked[-1].field_terms), [])
        self.assertEqual(parsed, ["a=b"])

    def test_long_selector(self) -> None:
        """Long selectors are understood, too."""
        authorizer = Verbs("list")
        value = "v" * 1000
        self.ask(authorizer, "GET", f"/api/v1/pods?fieldSelector=metadata.name%3D{value}")
        self.assertEqual(authorizer.asked[-1].field_terms, (("metadata.name", value, True),))

    def test_streams_need_create(self) -> None:
        """Who may only get can not run anything in a pod, whatever the HTTP method: k/k#83465."""
        for stream in ("exec", "attach", "portforward"):
            path = f"/api/v1/namespaces/ns/pods/p/{stream}?command=ls"
            for verbs, expected in ((("get",), 403), (("create",), 403), (("get", "create"), 200)):
                self.assertEqual(self.ask(Verbs(*verbs), "GET", path), expected, (stream, verbs))
            self.assertEqual(self.ask(Verbs("create"), "POST", path), 200)
        self.assertEqual(self.ask(Verbs("get"), "GET", "/api/v1/namespaces/ns/pods/p/log"), 200)
        for stream in ("exec", "attach", "portForward", "run", "cri"):
            path = f"/api/v1/nodes/n/proxy/{stream}/ns/p/c"
            for verbs, expected in ((("get",), 403), (("get", "create"), 200)):
                self.assertEqual(self.ask(Verbs(*verbs), "GET", path), expected, (stream, verbs))
        self.assertEqual(self.ask(Verbs("get"), "GET", "/api/v1/nodes/n/proxy/metrics"), 200)
        self.assertEqual(self.ask(Verbs("get"), "GET", "/api/v1/nodes/n/proxy"), 200)

    def test_detours_to_streams(self) -> None:
        """A path that leads to a kubelet's streams is one to them, however it is written."""
        for path in (
            "/exec/ns/p/c",
            "%2Fexec/ns/p/c",
            "./exec/ns/p/c",
            "a/../exec/ns/p/c",
            "a/b/%2e%2e/%2e./%65xec/ns",
        ):
            self.assertEqual(self.ask(Verbs("get"), "GET", f"/api/v1/nodes/n/proxy/{path}"), 403, path)

    def test_second_question(self) -> None:
        """Who may get a stream, but not create it, is told so in the reference's words: without saying for what."""
        answer = self.answer(Verbs("get"), "GET", "/api/v1/namespaces/ns/pods/p/exec?command=ls")
        self.assertEqual(answer["message"], 'pods "p" is forbidden: ')
        self.assertEqual(answer["details"], {"name": "p", "kind": "pods"})
