"""Tests for the filters, all of them in front of one leaf."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.filters.auditid import random_uuid
from kubetwist.filters.authentication import LINES_PER_SECOND, with_authentication
from kubetwist.http.request import KubeRequest
from kubetwist.http.warnings import Warnings

from ..http.harness import Allow, Client, Everyone, filtered_site, make_site

PODS = "/api/v1/namespaces/ns/pods"


class Says:
    """An authorizer, or authenticator, that returns or raises one thing."""

    name = "Says"

    def __init__(self, result: Any) -> None:
        self.result = result

    def authenticate(self, request: Any) -> Any:
        """Give it."""
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    authorize = authenticate


class AuditIDTests(SynchronousTestCase):
    """Tests for L{kubetwist.filters.auditid}."""

    def test_ours(self) -> None:
        """Every answer has an id of its own."""
        client = Client(filtered_site())
        ids = {client.request("GET", "/").header("audit-id") for _ in range(10)}
        self.assertEqual(len(ids), 10)

    def test_theirs(self) -> None:
        """A client's id is kept."""
        seen: list[str] = []

        def handle(request: KubeRequest) -> None:
            """Keep the user, and answer."""
            seen.append(request.audit_id)
            request.respond(200, b"", b"text/plain")

        answer = Client(filtered_site(handle)).request("GET", "/", Audit_ID="mine")
        self.assertEqual((answer.headers["audit-id"], seen), (["mine"], ["mine"]))

    def test_random_uuid(self) -> None:
        """Our ids are random UUIDs."""
        pattern = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
        made = [random_uuid() for _ in range(200)]
        for one in made:
            self.assertRegex(one, pattern)
        self.assertEqual(len(set(made)), len(made))

    def test_forked(self) -> None:
        """A process and what it forks have no ids in common."""
        random_uuid()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, "".join(random_uuid() for _ in range(70)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        theirs = os.read(reading, 1 << 16).decode()
        os.close(reading)
        os.close(writing)
        self.assertEqual(len(theirs), 70 * 36)
        self.assertEqual([one for one in (random_uuid() for _ in range(70)) if one in theirs], [])


class CacheControlTests(SynchronousTestCase):
    """Tests for L{kubetwist.filters.cachecontrol}."""

    def test_private(self) -> None:
        """Answers say that they are for nobody else, errors too."""
        for authorizer in (Allow(), Says(Verdict(Decision.DENY))):
            answer = Client(filtered_site(authorizer=authorizer)).request("GET", "/")
            self.assertEqual(answer.headers["cache-control"], ["no-cache, private"])


class PanicRecoveryTests(SynchronousTestCase):
    """Tests for L{kubetwist.filters.panicrecovery}."""

    def test_bug(self) -> None:
        """After a bug the connection serves on."""

        def handle(request: KubeRequest) -> None:
            """Keep the user, and answer."""
            if request.path == b"/bug":
                raise RuntimeError("secret")
            request.respond(200, b"", b"text/plain")

        client = Client(filtered_site(handle))
        answer = client.request("GET", "/bug")
        self.assertEqual((answer.code, json.loads(answer.body)["reason"]), (500, "InternalError"))
        self.assertNotIn(b"secret", answer.body)
        self.assertEqual(client.request("GET", "/fine").code, 200)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_bug_in_an_authorizer(self) -> None:
        """A bug in a plugin allows nothing."""
        answer = Client(filtered_site(authorizer=Says(fail(RuntimeError("oops"))))).request("GET", "/")
        self.assertEqual(answer.code, 500)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)


class DeadlineTests(SynchronousTestCase):
    """Tests for L{kubetwist.filters.deadline}."""

    def setUp(self) -> None:
        """A handler that lets requests wait, and a clock."""
        self.waiting: list[KubeRequest] = []
        self.clock = Clock()
        self.client = Client(filtered_site(self.waiting.append, clock=self.clock))

    def ask(self, path: str) -> None:
        """Send a request."""
        self.client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def test_too_slow(self) -> None:
        """A request that takes longer than a minute is answered with 504, and its late answer dropped."""
        self.ask(PODS)
        self.clock.advance(59)
        self.assertEqual(self.client.answers(), [])
        self.clock.advance(1)
        (answer,) = self.client.answers()
        status = json.loads(answer.body)
        self.assertEqual((answer.code, status["reason"]), (504, "Timeout"))
        self.assertEqual(status["message"], "Timeout: request did not complete within the allotted timeout")
        self.waiting[0].respond(200, b"late", b"text/plain")
        self.assertEqual(self.client.answers(), [])

    def test_in_time(self) -> None:
        """A request that is answered in time leaves no timer behind."""
        self.ask(PODS)
        self.waiting[0].respond(200, b"", b"text/plain")
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)  # the site's own

    def test_gone(self) -> None:
        """Nor does one whose client goes away."""
        self.ask(PODS)
        self.client.channel.connectionLost(RuntimeError("gone"))
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)

    def test_switched(self) -> None:
        """A connection that became another protocol's lasts, whatever request it began with."""
        self.ask(f"{PODS}/web/console")
        self.assertTrue(self.waiting[0].switch_protocols([(b"Upgrade", b"websocket")], Protocol()))
        self.clock.advance(61)
        self.assertFalse(self.client.transport.disconnecting or self.client.transport.disconnected)

    def test_less(self) -> None:
        """A client may ask for less time, but not for more."""
        self.ask(f"{PODS}?timeout=5s")
        self.assertEqual(self.waiting[0].deadline, 5)
        self.clock.advance(5)
        self.assertEqual(self.client.answers()[0].code, 504)
        self.ask(f"{PODS}?timeout=5m")
        self.assertEqual(self.waiting[1].deadline, 65)

    def test_none_wanted(self) -> None:
        """A timeout of zero stands for the usual one."""
        self.ask(f"{PODS}?timeout=0s")
        self.assertEqual(self.waiting[0].deadline, 60)

    def test_nonsense(self) -> None:
        """A timeout that is none is 400, in Go's words."""
        answer = self.client.request("GET", f"{PODS}?timeout=soon")
        self.assertEqual(answer.code, 400)
        self.assertEqual(
            json.loads(answer.body)["message"],
            'invalid timeout specified in the request URL - time: invalid duration "soon"',
        )

    def test_watch(self) -> None:
        """A watch has no deadline."""
        self.ask(f"{PODS}?watch=1&timeout=soon")
        self.clock.advance(10000)
        self.assertEqual(self.client.answers(), [])
        self.assertIsNone(self.waiting[0].deadline)

    def test_half_answered(self) -> None:
        """An answer that is not finished in time is cut off."""
        self.ask(PODS)
        self.waiting[0].write(b"half")
        self.clock.advance(60)
        self.assertTrue(self.client.transport.disconnecting)


class AuthenticationTests(SynchronousTestCase):
    """Tests for L{kubetwist.filters.authentication}."""

    def setUp(self) -> None:
        """A place for the users that are seen."""
        self.users: list[UserInfo | None] = []

    def handle(self, request: KubeRequest) -> None:
        """Keep the user, and answer."""
        self.users.append(request.user)
        request.respond(200, b"", b"text/plain")

    def ask(self, authenticator: Any) -> Any:
        """Send a request to a site with one authenticator."""
        return Client(filtered_site(self.handle, authenticator=authenticator)).request("GET", PODS)

    def assert_refused(self, authenticator: Any) -> None:
        """Expect the 401 that tells nothing."""
        answer = self.ask(authenticator)
        self.assertEqual(
            (answer.code, json.loads(answer.body)),
            (
                401,
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": "Unauthorized",
                    "reason": "Unauthorized",
                    "code": 401,
                },
            ),
        )
        self.assertIsNone(answer.header("x-content-type-options"))
        self.assertEqual(self.users, [])

    def test_known(self) -> None:
        """The handler sees who sends a request, whether that was known at once or later."""
        user = UserInfo("alice")
        for authenticator in (Everyone(user), Says(succeed(user))):
            self.assertEqual(self.ask(authenticator).code, 200)
        self.assertEqual(self.users, [user, user])

    def test_unknown(self) -> None:
        """A request of nobody is 401."""
        self.assert_refused(Says(None))
        self.assert_refused(Says(succeed(None)))

    def test_bad(self) -> None:
        """A request with bad credentials is 401, and is not told what is bad about them."""
        self.assert_refused(Says(AuthenticationFailed("secret")))
        self.assert_refused(Says(fail(AuthenticationFailed("secret"))))

    def test_told(self) -> None:
        """The log is told why and of which request, in one line, and of a flood how large it was."""
        logged: list[str] = []

        def observe(event: Any) -> None:
            logged.append(formatEvent(event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        now = 0.0
        bad = Says(AuthenticationFailed("bad\nline " + "x" * 2000))
        handler = with_authentication(self.handle, bad, (frozenset(), ()), lambda: now)

        def named(request: KubeRequest) -> None:
            request.audit_id = "id-1"
            handler(request)

        client = Client(make_site(named))
        for _ in range(150):
            client.request("GET", PODS)
        self.assertEqual(len(logged), LINES_PER_SECOND)
        self.assertIn("unable to authenticate a request (id-1): bad line xxx", logged[0])
        self.assertLess(len(logged[0]), 1100)
        now = 1.0
        client.request("GET", PODS)
        self.assertIn("rate limit: 50 requests with bad credentials were not logged", logged[-2])
        self.assertEqual(len(logged), LINES_PER_SECOND + 2)

    def test_credentials(self) -> None:
        """CVE-2019-16276: handlers see neither credentials nor headers of proxies, however those are spelt."""
        seen: dict[bytes, Any] = {}

        def handle(request: KubeRequest) -> None:
            seen.update(request.fields)
            self.handle(request)

        protocol = "base64url.bearer.authorization.k8s.io.YQ"
        client = Client(filtered_site(handle, authenticator=Says(UserInfo("alice"))))
        client.request(
            "GET",
            PODS,
            Authorization="Bearer secret",
            X_Remote_User="root",
            X_Remote_Extra_Scopes="all",
            Sec_WebSocket_Protocol=f"v5.channel.k8s.io, {protocol}",
            X_Other="kept",
        )
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX_Remote_Group: system:masters\r\nX-Remote_Extra-A: b\r\n\r\n")
        self.assertEqual(set(seen), {b"host", b"sec-websocket-protocol", b"x-other"})
        self.assertEqual(seen[b"sec-websocket-protocol"], [b"v5.channel.k8s.io"])

    def test_gone_meanwhile(self) -> None:
        """A request whose client goes away before it is known who sent it is not served."""
        later: Deferred[UserInfo] = Deferred()
        client = Client(filtered_site(self.handle, authenticator=Says(later)))
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        client.channel.connectionLost(RuntimeError("gone"))
        later.callback(UserInfo("alice"))
        self.assertEqual(self.users, [])


class AuthorizationTests(SynchronousTestCase):
    """Tests for L{kubetwist.filters.authorization}."""

    def forbidden(self, method: str, path: str, verdict: Any = None, user: str = "bob") -> Any:
        """The Status of a request that is not allowed."""
        verdict = verdict or Verdict(Decision.NO_OPINION)
        site = filtered_site(
            lambda request: self.fail("was served"),
            authenticator=Everyone(UserInfo(user)),
            authorizer=Says(verdict),
        )
        answer = Client(site).request(method, path)
        self.assertEqual(answer.code, 403)
        self.assertEqual(answer.header("x-content-type-options"), "nosniff")
        status = json.loads(answer.body)
        self.assertEqual(status["reason"], "Forbidden")
        return status

    def test_messages(self) -> None:
        """A refusal names user, verb, resource, group and namespace in the reference's words."""
        for method, path, message in (
            (
                "GET",
                PODS,
                'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "ns"',
            ),
            (
                "PUT",
                "/apis/apps/v1/namespaces/ns/deployments/web/scale",
                'deployments.apps "web" is forbidden: User "bob" cannot update resource "deployments/scale" in API'
                ' group "apps" in the namespace "ns"',
            ),
            (
                "GET",
                "/api/v1/nodes/n1",
                'nodes "n1" is forbidden: User "bob" cannot get resource "nodes" in API group "" at the cluster scope',
            ),
            ("GET", "/nowhere", 'forbidden: User "bob" cannot get path "/nowhere"'),
        ):
            self.assertEqual(self.forbidden(method, path)["message"], message)

    def test_details(self) -> None:
        """The details name what was asked for."""
        status = self.forbidden("DELETE", "/apis/apps/v1/namespaces/ns/deployments/web")
        self.assertEqual(status["details"], {"name": "web", "group": "apps", "kind": "deployments"})

    def test_reason(self) -> None:
        """An authorizer's reason is told."""
        status = self.forbidden("GET", "/nowhere", Verdict(Decision.DENY, "because"))
        self.assertEqual(status["message"], 'forbidden: User "bob" cannot get path "/nowhere": because')

    def test_no_html(self) -> None:
        """Nothing that a client chose can be taken for HTML."""
        message = self.forbidden("GET", "/%3Cscript%3E", user="<b>")["message"]
        self.assertEqual(message, 'forbidden: User "&lt;b&gt;" cannot get path "/&lt;script&gt;"')

    def test_later(self) -> None:
        """A verdict that takes time counts as one that does not."""
        self.forbidden("GET", PODS, succeed(Verdict(Decision.DENY)))
        allowed = Says(succeed(Verdict(Decision.ALLOW)))
        self.assertEqual(Client(filtered_site(authorizer=allowed)).request("GET", PODS).code, 200)

    def test_question(self) -> None:
        """An authorizer is asked about everything that the path tells."""
        authorizer = Allow()
        Client(filtered_site(authorizer=authorizer)).request(
            "PATCH", "/apis/apps/v1/namespaces/ns/deployments/web/status"
        )
        (asked,) = authorizer.asked
        self.assertEqual(
            (asked.verb, asked.group, asked.version, asked.resource, asked.subresource, asked.namespace, asked.name),
            ("patch", "apps", "v1", "deployments", "status", "ns", "web"),
        )
        self.assertTrue(asked.is_resource_request)


class WarningsTests(SynchronousTestCase):
    """Tests for L{Warnings}."""

    def test_total(self) -> None:
        """When all together are too long, each is cut, earlier ones too."""
        warnings = Warnings()
        texts = [str(number) * 1000 for number in range(1, 6)]
        for text in texts[:4]:
            warnings.add(text)
        self.assertEqual([len(value) for value in warnings.values], [1008] * 4)
        warnings.add(texts[4])
        self.assertEqual([len(value) for value in warnings.values], [264] * 5)

    def test_bounded(self) -> None:
        """However many are added, only so much is sent."""
        warnings = Warnings()
        for number in range(10000):
            warnings.add(f"warning {number} " + "x" * 300)
        self.assertLess(sum(map(len, warnings.values)), 5000)

    def test_unsendable(self) -> None:
        """Texts that no header can carry, and empty ones, are dropped."""
        warnings = Warnings()
        for text in ("", "a\nb", "a\x00", "a\x85b"):
            warnings.add(text)
        warnings.add("fine", agent="two words")
        warnings.add("ünïcode")
        self.assertEqual(warnings.values, ['299 - "ünïcode"'.encode()])
