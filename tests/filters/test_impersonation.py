"""Tests for L{kubetwist.filters.impersonation}."""

from __future__ import annotations

import json

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import UserInfo
from kubetwist.api.users import split_service_account
from kubetwist.filters.authorization import forbidden
from kubetwist.filters.impersonation import wanted_user
from kubetwist.filters.impersonationmodes import Impersonated, Modes, Refused, completed, constrained_modes, questions
from kubetwist.http.request import KubeRequest

from ..http.harness import Answer, Client, Everyone, filtered_site

BOSS = UserInfo("boss", groups=("system:authenticated",))
PODS = "/api/v1/namespaces/ns/pods"


class WantedTests(SynchronousTestCase):
    """Tests for L{wanted_user}."""

    def test_nobody(self) -> None:
        """Headers about something else, and an empty name alone, name nobody."""
        self.assertIsNone(wanted_user({b"accept": [b"*/*"]}))
        self.assertIsNone(wanted_user({b"impersonate-user": [b""]}))

    def test_all(self) -> None:
        """Groups may be many; the keys of extras are percent-encoded, and in lower case."""
        fields = {
            b"impersonate-user": ["zoë".encode()],
            b"impersonate-uid": [b"u"],
            b"impersonate-group": [b"a", b"b"],
            b"impersonate-extra-acme.com%2fproject": [b"x", b"y"],
        }
        wanted = UserInfo("zoë", "u", ("a", "b"), {"acme.com/project": ("x", "y")})
        self.assertEqual(wanted_user(fields), wanted)

    def test_no_name(self) -> None:
        """What is said of nobody is refused, in the words of the reference."""
        for field, value, text in (
            (b"impersonate-uid", b"7", 'UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)'),
            (b"impersonate-group", b"a", 'UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)'),
            (
                b"impersonate-extra-k",
                b"v",
                'UID:"", Groups:[]string(nil), Extra:map[string][]string{"k":[]string{"v"}}',
            ),
        ):
            error = self.assertRaises(APIStatusError, wanted_user, {field: [value]})
            self.assertEqual(error.code, 400)
            text = f'requested &user.DefaultInfo{{Name:"", {text}}} without impersonating a user name'
            self.assertEqual(error.message, text)

    def test_repeated(self) -> None:
        """Two names, or two uids, are refused: it would depend on the reader which of them counts."""
        for field in (b"impersonate-user", b"impersonate-uid"):
            fields = {b"impersonate-user": [b"a"], field: [b"a", b"b"]}
            self.assertEqual(self.assertRaises(APIStatusError, wanted_user, fields).code, 400)

    def test_odd(self) -> None:
        """So is what others may take for such a header, and what is no text."""
        for field, value, why in (
            (b"impersonate_user", b"root", "can be taken for Impersonate-User"),
            (b"impersonate_extra-k", b"v", "can be taken for Impersonate-Extra-K"),
            (b"impersonate-group", b"a\x01", "has control characters"),
            (b"impersonate-extra-k", b"\xff", "is not UTF-8"),
            (b"impersonate-extra-%ff", b"x", "is not UTF-8"),
        ):
            error = self.assertRaises(APIStatusError, wanted_user, {b"impersonate-user": [b"a"], field: [value]})
            self.assertEqual(error.code, 400)
            self.assertIn(why, error.message)


class CompletedTests(SynchronousTestCase):
    """Tests for L{completed}: the groups that go without saying."""

    def groups(self, name: str, *groups: str) -> tuple[str, ...]:
        """The groups of a user with those that were asked for."""
        return completed(UserInfo(name, groups=groups)).groups

    def test_users(self) -> None:
        """Everyone is authenticated, who is not said to be unauthenticated."""
        self.assertEqual(self.groups("a"), ("system:authenticated",))
        self.assertEqual(self.groups("a", "b"), ("b", "system:authenticated"))
        self.assertEqual(self.groups("a", "system:authenticated"), ("system:authenticated",))
        self.assertEqual(self.groups("a", "system:unauthenticated"), ("system:unauthenticated",))

    def test_anonymous(self) -> None:
        """But not who has no name."""
        self.assertEqual(self.groups("system:anonymous"), ("system:unauthenticated",))

    def test_service_accounts(self) -> None:
        """A service account is in its groups unless others are asked for."""
        name = "system:serviceaccount:ns:robot"
        own = ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
        self.assertEqual(self.groups(name), own)
        self.assertEqual(self.groups(name, "only"), ("only", "system:authenticated"))

    def test_no_service_account(self) -> None:
        """A name that no account can have is a user's."""
        for name in ("ns", "ns:", ":robot", "ns:a:b", "Ns:robot"):
            self.assertIsNone(split_service_account(f"system:serviceaccount:{name}"))


class QuestionTests(SynchronousTestCase):
    """Tests for L{questions}."""

    def test_each_part(self) -> None:
        """Every part of an identity is asked about."""
        wanted = UserInfo("dave", "u", ("a", "b"), {"k": ("v", "w")})
        found = [(ask.group, ask.resource, ask.subresource, ask.name) for ask in questions(BOSS, wanted)]
        authentication = "authentication.k8s.io"
        self.assertEqual(
            found,
            [
                ("", "users", "", "dave"),
                (authentication, "uids", "", "u"),
                ("", "groups", "", "a"),
                ("", "groups", "", "b"),
                (authentication, "userextras", "k", "v"),
                (authentication, "userextras", "k", "w"),
            ],
        )
        for ask in questions(BOSS, wanted):
            self.assertEqual((ask.user, ask.verb), (BOSS, "impersonate"))

    def test_service_account(self) -> None:
        """An account is asked about where it is."""
        (ask,) = questions(BOSS, UserInfo("system:serviceaccount:ns:robot"))
        self.assertEqual((ask.resource, ask.namespace, ask.name), ("serviceaccounts", "ns", "robot"))


class ModeTests(SynchronousTestCase):
    """Tests for L{Modes}; the test case is the authorizer."""

    name = "Rules"
    robot = UserInfo(
        "system:serviceaccount:ns:agent",
        groups=("system:authenticated",),
        extra={"authentication.kubernetes.io/node-name": ("n1",), "authentication.kubernetes.io/pod-name": ("p",)},
    )

    def setUp(self) -> None:
        """Nothing is allowed."""
        self.asked: list[AuthorizerAttributes] = []
        self.allowed: set[tuple[str, str, str]] = set()
        self.modes = Modes(self, True)

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """What is allowed, by verb, resource and name; no name stands for all."""
        self.asked.append(attributes)
        verb, resource = attributes.verb, attributes.resource
        allowed = {(verb, resource, attributes.name), (verb, resource, "")} & self.allowed
        return Verdict(Decision.ALLOW if allowed else Decision.NO_OPINION)

    def find(self, wanted: UserInfo, by: UserInfo = BOSS) -> Impersonated:
        """Who lists pods as somebody else."""
        attributes = AuthorizerAttributes(by, "list", version="v1", resource="pods", namespace="ns")
        return self.successResultOf(Deferred.fromCoroutine(self.modes.find(attributes, wanted)))  # type: ignore[no-any-return]

    def refused(self, wanted: UserInfo, by: UserInfo = BOSS) -> str:
        """Why nobody does."""
        attributes = AuthorizerAttributes(by, "list", version="v1", resource="pods", namespace="ns")
        failure = self.failureResultOf(Deferred.fromCoroutine(self.modes.find(attributes, wanted)), Refused)
        refused = failure.value
        assert isinstance(refused, Refused)
        return forbidden(refused.question, refused.verdict.reason).message

    def test_constrained(self) -> None:
        """Who may list pods as dave may only do that as him."""
        self.allowed = {("impersonate-on:user-info:list", "pods", ""), ("impersonate:user-info", "users", "dave")}
        found = self.find(UserInfo("dave"))
        self.assertEqual(
            found, Impersonated(UserInfo("dave", groups=("system:authenticated",)), "impersonate:user-info")
        )
        self.assertEqual(
            [(ask.verb, ask.group, ask.resource, ask.namespace, ask.name) for ask in self.asked],
            [
                ("impersonate-on:user-info:list", "", "pods", "ns", ""),
                ("impersonate:user-info", "authentication.k8s.io", "users", "", "dave"),
            ],
        )

    def test_refused(self) -> None:
        """A refusal tells what was asked first, and all ways were tried."""
        text = 'User "boss" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"'
        self.assertEqual(self.refused(UserInfo("dave")), f"pods is forbidden: {text}")
        self.assertEqual([ask.verb for ask in self.asked], ["impersonate-on:user-info:list", "impersonate"])

    def test_old_mode(self) -> None:
        """Who may impersonate without more may do everything; the next time that is tried first."""
        self.allowed = {("impersonate", "users", "")}
        for tried in (2, 1):
            self.asked.clear()
            self.assertEqual(self.find(UserInfo("dave")).constraint, "")
            self.assertEqual(len(self.asked), tried)
        self.allowed = set()
        text = 'User "boss" cannot impersonate resource "users" in API group "" at the cluster scope'
        self.assertEqual(self.refused(UserInfo("dave")), f'users "dave" is forbidden: {text}')

    def test_off(self) -> None:
        """Without the feature there is the old mode only."""
        self.modes = Modes(self, False)
        self.refused(UserInfo("dave"))
        self.assertEqual([ask.verb for ask in self.asked], ["impersonate"])

    def test_masters(self) -> None:
        """Nobody becomes a master, or member of a group without a name, but in the old mode."""
        self.allowed = {
            (verb, what, "")
            for verb, what in (
                ("impersonate-on:user-info:list", "pods"),
                ("impersonate:user-info", "users"),
                ("impersonate:user-info", "groups"),
            )
        }
        for group, why in (
            ("system:masters", "impersonating the system:masters group is not allowed"),
            ("", "impersonating the empty string group is not allowed"),
        ):
            self.assertTrue(self.refused(UserInfo("dave", groups=(group,))).endswith(f"at the cluster scope: {why}"))
        self.allowed |= {("impersonate", "users", ""), ("impersonate", "groups", "")}
        self.assertEqual(self.find(UserInfo("dave", groups=("system:masters",))).constraint, "")

    def test_many(self) -> None:
        """Of four groups or more it is asked first whether all are allowed; each is enough, too."""
        groups = ("a", "b", "c", "d")
        base = {("impersonate-on:user-info:list", "pods", ""), ("impersonate:user-info", "users", "")}
        for names in (("*",), groups):
            self.allowed = base | {("impersonate:user-info", "groups", name) for name in names}
            self.assertEqual(self.find(UserInfo("dave", groups=groups)).user.groups[:4], groups)
        self.allowed.discard(("impersonate:user-info", "groups", "c"))
        self.assertIn('groups.authentication.k8s.io "c" is forbidden', self.refused(UserInfo("dave", groups=groups)))

    def test_extra(self) -> None:
        """Keys of extras need a domain in the new modes, and values that say something."""
        self.allowed = {
            (verb, what, "")
            for verb, what in (
                ("impersonate-on:user-info:list", "pods"),
                ("impersonate:user-info", "users"),
                ("impersonate:user-info", "userextras"),
            )
        }
        for extra, why in (
            ({"k": ("v",)}, 'extra.key: Invalid value: "k": must be a domain-prefixed path (such as "acme.io/foo")'),
            ({"": ("v",)}, "impersonating the empty string key in extra is not allowed"),
            ({"acme.io/k": ()}, "impersonating empty values in extra is not allowed"),
            ({"acme.io/k": ("",)}, "impersonating the empty string value in extra is not allowed"),
            ({"acme.io/K": ("v",)}, 'impersonating a non-lowercase key in extra is not allowed: "acme.io/K"'),
        ):
            self.assertIn(why, self.refused(UserInfo("dave", extra=extra)))
        self.find(UserInfo("dave", extra={"acme.io/k": ("v", "w")}))
        self.assertEqual([ask.name for ask in self.asked[-2:]], ["v", "w"])

    def test_accounts(self) -> None:
        """An account is impersonated whole: nobody says what groups it is in."""
        name = "system:serviceaccount:ns:robot"
        self.allowed = {
            ("impersonate-on:serviceaccount:list", "pods", ""),
            ("impersonate:serviceaccount", "serviceaccounts", "robot"),
        }
        found = self.find(UserInfo(name))
        self.assertEqual(found.constraint, "impersonate:serviceaccount")
        self.assertIn("system:serviceaccounts:ns", found.user.groups)
        self.assertIn("cannot impersonate resource", self.refused(UserInfo(name, groups=("a",))))

    def test_nodes(self) -> None:
        """A node is in the group of nodes, whoever acts as it."""
        self.allowed = {
            ("impersonate-on:arbitrary-node:list", "pods", ""),
            ("impersonate:arbitrary-node", "nodes", "n1"),
        }
        found = self.find(UserInfo("system:node:n1"))
        user = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))
        self.assertEqual(found, Impersonated(user, "impersonate:arbitrary-node"))
        self.refused(UserInfo("system:node:n2"))

    def test_own_node(self) -> None:
        """An account on a node may be allowed to act as that node, whichever it is, and as no other."""
        self.allowed = {
            ("impersonate-on:associated-node:list", "pods", ""),
            ("impersonate:associated-node", "nodes", "*"),
        }
        found = self.find(UserInfo("system:node:n1"), self.robot)
        self.assertEqual((found.user.name, found.constraint), ("system:node:n1", "impersonate:associated-node"))
        keys = ("authentication.kubernetes.io/node-name", "authentication.kubernetes.io/pod-name")
        for ask in self.asked:
            self.assertEqual(ask.user.extra, {"authentication.kubernetes.io/associated-node-keys": keys})
        self.assertIn("impersonate-on:arbitrary-node:list", self.refused(UserInfo("system:node:n2"), self.robot))
        self.assertIn("impersonate-on:arbitrary-node:list", self.refused(UserInfo("system:node:n1")))

    def test_applicable(self) -> None:
        """A name that no node or account can have is that of some user."""
        for name, modes in (
            ("dave", ["user-info"]),
            ("system:node:", ["user-info"]),
            ("system:node:N1", ["user-info"]),
            ("system:serviceaccount:ns:", ["user-info"]),
            ("system:node:n1", ["associated-node", "arbitrary-node"]),
            ("system:serviceaccount:ns:a", ["serviceaccount"]),
        ):
            self.assertEqual(list(constrained_modes(self.robot, UserInfo(name))), modes, name)


class ImpersonationTests(SynchronousTestCase):
    """The filter, among the others; the test case is the authorizer."""

    name = "Rules"

    def setUp(self) -> None:
        """Allow everything, at once."""
        self.asked: list[AuthorizerAttributes] = []
        self.refused = ""
        self.late = False

    def authorize(self, attributes: AuthorizerAttributes) -> object:
        """All but impersonating C{refused} is allowed."""
        self.asked.append(attributes)
        refuse = attributes.verb.startswith("impersonate") and attributes.name == (self.refused or None)
        verdict = Verdict(Decision.NO_OPINION if refuse else Decision.ALLOW)
        return succeed(verdict) if self.late else verdict

    def ask(self, **headers: str) -> Answer:
        """Ask for pods; the answer tells who did."""

        def handle(request: KubeRequest) -> None:
            assert request.user is not None
            self.request = request
            request.respond(200, json.dumps([request.user.name, *request.user.groups]).encode(), b"application/json")

        site = filtered_site(handle, authenticator=Everyone(BOSS), authorizer=self)
        return Client(site).request("GET", PODS, **headers)

    def test_none(self) -> None:
        """Without headers the sender is the user, and nothing more is asked."""
        self.assertEqual(json.loads(self.ask().body)[0], "boss")
        self.assertEqual([ask.verb for ask in self.asked], ["list"])

    def test_allowed(self) -> None:
        """Who may impersonate is the other from there on."""
        for self.late in (False, True):
            self.asked.clear()
            answer = self.ask(Impersonate_User="dave", Impersonate_Group="devs")
            self.assertEqual(json.loads(answer.body), ["dave", "devs", "system:authenticated"])
            self.assertEqual([ask.user.name for ask in self.asked], ["boss", "boss", "boss", "dave"])
            self.assertEqual(self.request.impersonator, BOSS)
            self.assertEqual(self.request.impersonation_constraint, "impersonate:user-info")
            self.assertEqual([name for name in self.request.fields if b"imp" in name], [])

    def test_refused(self) -> None:
        """One part that is not allowed is enough for a 403, which tells what."""
        self.refused = "devs"
        for self.late in (False, True):
            answer = self.ask(Impersonate_User="dave", Impersonate_Group="devs")
            self.assertEqual(answer.code, 403)
            where = 'in API group "authentication.k8s.io" at the cluster scope'
            text = f'User "boss" cannot impersonate:user-info resource "groups" {where}'
            self.assertEqual(
                json.loads(answer.body)["message"], f'groups.authentication.k8s.io "devs" is forbidden: {text}'
            )

    def test_bad(self) -> None:
        """Headers that make no sense are a 400, and nobody is asked."""
        answer = self.ask(Impersonate_Group="devs")
        self.assertEqual((answer.code, answer.header("x-content-type-options")), (400, "nosniff"))
        self.assertEqual(self.asked, [])
