"""Tests of L{kubetwist.filters.impersonation}."""

from __future__ import annotations

import json

from twisted.internet.defer import succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.errors import APIStatusError
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import UserInfo
from kubetwist.filters.impersonation import MissingUserError, process_impersonation_headers
from kubetwist.http.request import KubeRequest
from tests.filters.requesters import BOSS
from tests.http.harness import Answer, Client, Everyone, filtered_site

PODS = "/api/v1/namespaces/ns/pods"


class HeaderTests(SynchronousTestCase):
    """L{process_impersonation_headers}."""

    def test_none(self) -> None:
        """Other headers, and an empty user name alone, impersonate no user."""
        self.assertIsNone(process_impersonation_headers({b"accept": [b"*/*"]}))
        self.assertIsNone(process_impersonation_headers({b"impersonate-user": [b""]}))

    def test_all(self) -> None:
        """Groups may be repeated; keys of extra values are percent-decoded and in lower case."""
        fields = {
            b"impersonate-user": ["zoë".encode()],
            b"impersonate-uid": [b"u"],
            b"impersonate-group": [b"a", b"b"],
            b"impersonate-extra-acme.com%2fproject": [b"x", b"y"],
        }
        target = UserInfo("zoë", "u", ("a", "b"), {"acme.com/project": ("x", "y")})
        self.assertEqual(process_impersonation_headers(fields), target)

    def test_no_name(self) -> None:
        """Headers without a user name are refused with the reference's text."""
        for field, value, text in (
            (b"impersonate-uid", b"7", 'UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)'),
            (b"impersonate-group", b"a", 'UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)'),
            (
                b"impersonate-extra-k",
                b"v",
                'UID:"", Groups:[]string(nil), Extra:map[string][]string{"k":[]string{"v"}}',
            ),
        ):
            error = self.assertRaises(APIStatusError, process_impersonation_headers, {field: [value]})
            self.assertEqual(error.code, 400)
            text = f'requested &user.DefaultInfo{{Name:"", {text}}} without impersonating a user name'
            self.assertEqual(error.message, text)

    def test_no_name_without_modes(self) -> None:
        """Without constrained impersonation, the text lists what is impersonated."""
        fields = {
            b"impersonate-group": [b"a", b"b"],
            b"impersonate-extra-k": [b"v"],
            b"impersonate-uid": [b"7"],
        }
        error = self.assertRaises(MissingUserError, process_impersonation_headers, fields, False)
        references = "{Group  a    } {Group  b    } {UserExtra  v  authentication.k8s.io/v1  k}"
        self.assertEqual(
            error.message,
            f"requested [{references} {{UID  7  authentication.k8s.io/v1  }}] without impersonating a user",
        )

    def test_repeated(self) -> None:
        """Repeated user names or UIDs are refused, since proxies may evaluate another one."""
        for field in (b"impersonate-user", b"impersonate-uid"):
            fields = {b"impersonate-user": [b"a"], field: [b"a", b"b"]}
            self.assertEqual(self.assertRaises(APIStatusError, process_impersonation_headers, fields).code, 400)

    def test_ambiguous(self) -> None:
        """Headers that resemble impersonation headers, and values that are not text, are refused."""
        for field, value, reason in (
            (b"impersonate_user", b"root", "can be taken for Impersonate-User"),
            (b"impersonate_extra-k", b"v", "can be taken for Impersonate-Extra-K"),
            (b"impersonate-group", b"a\x01", "has control characters"),
            (b"impersonate-extra-k", b"\xff", "is not UTF-8"),
            (b"impersonate-extra-%ff", b"x", "is not UTF-8"),
        ):
            error = self.assertRaises(
                APIStatusError, process_impersonation_headers, {b"impersonate-user": [b"a"], field: [value]}
            )
            self.assertEqual(error.code, 400)
            self.assertIn(reason, error.message)


class ImpersonationTests(SynchronousTestCase):
    """C{with_impersonation} in the handler chain; the test case is the authorizer."""

    name = "Rules"

    def setUp(self) -> None:
        """Allow all requests synchronously."""
        self.authorized: list[AuthorizerAttributes] = []
        self.refused = ""
        self.late = False

    def authorize(self, attributes: AuthorizerAttributes) -> object:
        """Allow all requests except for impersonating C{refused}."""
        self.authorized.append(attributes)
        refuse = attributes.verb.startswith("impersonate") and attributes.name == (self.refused or None)
        verdict = Verdict(Decision.NO_OPINION if refuse else Decision.ALLOW)
        return succeed(verdict) if self.late else verdict

    def ask(self, features: FeatureGates | None = None, **headers: str) -> Answer:
        """List pods; the response contains the user."""

        def handle(request: KubeRequest) -> None:
            assert request.user is not None
            self.request = request
            request.respond(200, json.dumps([request.user.name, *request.user.groups]).encode(), b"application/json")

        site = filtered_site(handle, authenticator=Everyone(BOSS), authorizer=self, features=features)
        return Client(site).request("GET", PODS, **headers)

    def test_none(self) -> None:
        """Without headers the user is unchanged, and no further authorization takes place."""
        self.assertEqual(json.loads(self.ask().body)[0], "boss")
        self.assertEqual([ask.verb for ask in self.authorized], ["list"])

    def test_missing_user(self) -> None:
        """A missing user name is a 400 since 1.35; before, a 500 in plain text."""
        self.assertEqual(self.ask(FeatureGates((1, 35)), Impersonate_Group="<a>").code, 400)
        answer = self.ask(FeatureGates((1, 34)), Impersonate_Group="<a>")
        self.assertEqual(answer.code, 500)
        self.assertEqual(answer.headers["content-type"], ["text/plain; charset=utf-8"])
        text = "requested [{Group  &lt;a&gt;    }] without impersonating a user"
        self.assertEqual(answer.body.decode(), f'Internal Server Error: "{PODS}": {text}\n')

    def test_without_modes(self) -> None:
        """Releases without constrained impersonation only check the permission to impersonate."""
        answer = self.ask(FeatureGates((1, 34)), Impersonate_User="dave")
        self.assertEqual(json.loads(answer.body), ["dave", "system:authenticated"])
        self.assertEqual([ask.verb for ask in self.authorized], ["impersonate", "list"])
        self.assertEqual(self.request.impersonation_constraint, "")

    def test_allowed(self) -> None:
        """An allowed impersonation replaces the user for the later filters."""
        for self.late in (False, True):
            self.authorized.clear()
            answer = self.ask(Impersonate_User="dave", Impersonate_Group="devs")
            self.assertEqual(json.loads(answer.body), ["dave", "devs", "system:authenticated"])
            self.assertEqual([ask.user.name for ask in self.authorized], ["boss", "boss", "boss", "dave"])
            self.assertEqual(self.request.impersonator, BOSS)
            self.assertEqual(self.request.impersonation_constraint, "impersonate:user-info")
            self.assertEqual([name for name in self.request.fields if b"imp" in name], [])

    def test_refused(self) -> None:
        """An impersonation with one denied part is answered with a 403 that names the part."""
        self.refused = "devs"
        for self.late in (False, True):
            answer = self.ask(Impersonate_User="dave", Impersonate_Group="devs")
            self.assertEqual(answer.code, 403)
            scope = 'in API group "authentication.k8s.io" at the cluster scope'
            text = f'User "boss" cannot impersonate:user-info resource "groups" {scope}'
            self.assertEqual(
                json.loads(answer.body)["message"], f'groups.authentication.k8s.io "devs" is forbidden: {text}'
            )

    def test_invalid(self) -> None:
        """Invalid headers are answered with 400 without authorization."""
        answer = self.ask(Impersonate_Group="devs")
        self.assertEqual((answer.code, answer.header("x-content-type-options")), (400, "nosniff"))
        self.assertEqual(self.authorized, [])
