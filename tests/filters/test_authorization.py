"""Tests of L{kubetwist.filters.authorization}."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.filters import authorization
from tests.filters.answers import PODS, FixedResult
from tests.http.harness import Allow, Client, Everyone, filtered_site


class Verbs:
    """An authorizer that allows some verbs, and records the attributes."""

    name = "Verbs"

    def __init__(self, *verbs: str) -> None:
        self._verbs = verbs
        self.asked: list[AuthorizerAttributes] = []

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Decide by the verb."""
        self.asked.append(attributes)
        return Verdict(Decision.ALLOW if attributes.verb in self._verbs else Decision.NO_OPINION)


class AttributesTests(SynchronousTestCase):
    """Attributes that authorizers get."""

    def ask(self, authorizer: Verbs, method: str, path: str) -> int:
        """Return the status code of a request."""
        client = Client(filtered_site(authenticator=Everyone(UserInfo("eve")), authorizer=authorizer))
        return client.request(method, path).code

    def answer(self, authorizer: Verbs, method: str, path: str) -> Any:
        """Return the body of the response to a request."""
        client = Client(filtered_site(authenticator=Everyone(UserInfo("eve")), authorizer=authorizer))
        return json.loads(client.request(method, path).body)

    def test_selectors(self) -> None:
        """Authorizers get the parsed selectors of list, watch and deletecollection, as far as they can be parsed."""
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
        """Selectors are not parsed before an authorizer reads them."""
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
        """A long selector is parsed."""
        authorizer = Verbs("list")
        value = "v" * 1000
        self.ask(authorizer, "GET", f"/api/v1/pods?fieldSelector=metadata.name%3D{value}")
        self.assertEqual(authorizer.asked[-1].field_terms, (("metadata.name", value, True),))

    def test_streams_need_create(self) -> None:
        """exec, attach and portforward require the verb create, with any HTTP method (k/k#83465)."""
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
        """Every spelling of a kubelet's streaming path requires the verb create."""
        for path in (
            "/exec/ns/p/c",
            "%2Fexec/ns/p/c",
            "./exec/ns/p/c",
            "a/../exec/ns/p/c",
            "a/b/%2e%2e/%2e./%65xec/ns",
        ):
            self.assertEqual(self.ask(Verbs("get"), "GET", f"/api/v1/nodes/n/proxy/{path}"), 403, path)

    def test_create_check(self) -> None:
        """The error of the check for create has the reference's text, without the attributes."""
        answer = self.answer(Verbs("get"), "GET", "/api/v1/namespaces/ns/pods/p/exec?command=ls")
        self.assertEqual(answer["message"], 'pods "p" is forbidden: ')
        self.assertEqual(answer["details"], {"name": "p", "kind": "pods"})


class AuthorizationTests(SynchronousTestCase):
    """Responses to denied requests."""

    def forbidden(self, method: str, path: str, verdict: Any = None, user: str = "bob") -> Any:
        """Return the Status of a denied request."""
        verdict = verdict or Verdict(Decision.NO_OPINION)
        site = filtered_site(
            lambda request: self.fail("was served"),
            authenticator=Everyone(UserInfo(user)),
            authorizer=FixedResult(verdict),
        )
        answer = Client(site).request(method, path)
        self.assertEqual(answer.code, 403)
        self.assertEqual(answer.header("x-content-type-options"), "nosniff")
        status = json.loads(answer.body)
        self.assertEqual(status["reason"], "Forbidden")
        return status

    def test_messages(self) -> None:
        """The message names user, verb, resource, group and namespace in the reference's format."""
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
        """The details name the requested object."""
        status = self.forbidden("DELETE", "/apis/apps/v1/namespaces/ns/deployments/web")
        self.assertEqual(status["details"], {"name": "web", "group": "apps", "kind": "deployments"})

    def test_reason(self) -> None:
        """The message contains the authorizer's reason."""
        status = self.forbidden("GET", "/nowhere", Verdict(Decision.DENY, "because"))
        self.assertEqual(status["message"], 'forbidden: User "bob" cannot get path "/nowhere": because')

    def test_no_html(self) -> None:
        """Values that a client chose are escaped as HTML."""
        message = self.forbidden("GET", "/%3Cscript%3E", user="<b>")["message"]
        self.assertEqual(message, 'forbidden: User "&lt;b&gt;" cannot get path "/&lt;script&gt;"')

    def test_asynchronous(self) -> None:
        """An asynchronous verdict is handled like a synchronous one."""
        self.forbidden("GET", PODS, succeed(Verdict(Decision.DENY)))
        allowed = FixedResult(succeed(Verdict(Decision.ALLOW)))
        self.assertEqual(Client(filtered_site(authorizer=allowed)).request("GET", PODS).code, 200)

    def test_attributes(self) -> None:
        """An authorizer gets all attributes of the path."""
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
