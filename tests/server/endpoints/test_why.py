"""Tests for L{kubetwist.server.endpoints.why} and L{kubetwist.authorization._rbacexplain}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authorization.abac import ABAC, read_policies
from kubetwist.authorization.node import NodeAuthorizer
from kubetwist.authorization.union import AuthorizerUnion, PrivilegedGroup
from kubetwist.filters.authorization import WHY
from kubetwist.filters.handlerchain import with_filters
from kubetwist.http.site import traverse
from kubetwist.registry.core.node.graph import NodeGraph
from kubetwist.registry.rbac.ruleresolver import GROUP
from kubetwist.resources.mux import Layer
from kubetwist.server.chain import NotFound
from kubetwist.server.endpoints import why
from tests.http.harness import Answer, make_site
from tests.registry.rbac.rbacserver import API, RBACServer, Tokens, binding, role, rule
from tests.resources.server import JSONClient

ROLES, BINDINGS = f"{API}/namespaces/default/roles", f"{API}/namespaces/default/rolebindings"


class WhyTestCase(SynchronousTestCase):
    """A test on a server with the authorizers Node, RBAC and ABAC."""

    def setUp(self) -> None:
        """Without any role but one."""
        self.server = RBACServer()
        policies = b'{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":'
        policies += b'{"user":"carol","namespace":"*","resource":"events","readonly":true}}'
        abac = ABAC(read_policies("/p", policies))
        node = NodeAuthorizer(NodeGraph(self.server.stores, self.server.clock))
        union = AuthorizerUnion([PrivilegedGroup(), node, self.server.rbac, abac])
        config = SimpleNamespace(stores=self.server.stores, authorizer=union, reactor=self.server.clock)
        layer = Layer("why", NotFound())
        layer.claim_below(WHY, why.Why(config))
        handler = with_filters(traverse(layer), reactor=self.server.clock, authenticator=Tokens(), authorizer=union)
        self.site = make_site(handler, self.server.clock)
        reviewing = rule("create", "subjectaccessreviews", ["authorization.k8s.io"])
        self.make(f"{API}/clusterroles", role("reviewer", reviewing))
        self.make(f"{API}/clusterrolebindings", binding("reviewers", "ClusterRole/reviewer", "User/alice"))

    def make(self, path: str, obj: Any) -> None:
        """Create an object."""
        self.server.make(path, obj)

    def ask(self, user: str, method: str, query: str, **headers: str) -> tuple[int, Any]:
        """The status and the decoded body of an answer."""
        client = JSONClient(self.site)
        return client.ask(method, f"{WHY}?{query}", Authorization=f"Bearer {user}", **headers)

    def why(self, query: str, user: str = "alice", **headers: str) -> Any:
        """What the server tells."""
        code, answer = self.ask(user, "GET", query, **headers)
        self.assertEqual(code, 200, answer)
        return answer

    def misses(self, query: str) -> list[tuple[str, str]]:
        """What is missing in the near misses, with why."""
        answer = self.why(query)
        self.assertFalse(answer["allowed"])
        return [(miss["missing"], miss["why"]) for miss in answer["nearMisses"]]

    def text(self, query: str, **headers: str) -> str:
        """What the server tells people."""
        found: Answer = JSONClient(self.site).answer("GET", f"{WHY}?{query}", Authorization="Bearer alice", **headers)
        self.assertEqual(found.header("Content-Type"), "text/plain; charset=utf-8")
        return found.body.decode()


class QuestionTests(WhyTestCase):
    """Who may ask, and what."""

    def test_who(self) -> None:
        """Whoever may create a SubjectAccessReview may ask; others are told what they lack."""
        self.why("user=bob&verb=get&resource=pods")
        code, answer = self.ask("bob", "GET", "user=bob&verb=get&resource=pods")
        self.assertEqual(code, 403)
        self.assertIn(
            'cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io"', answer["message"]
        )
        self.why("verb=get&resource=pods", user="admin")

    def test_bad(self) -> None:
        """A question that makes no sense is a 400 that says why."""
        for query, part in (
            ("", "verb is required"),
            ("verb=get", "exactly one of resource and path"),
            ("verb=get&resource=pods&path=/x", "exactly one of resource and path"),
            ("verb=get&resource=pods&what=x", 'unknown parameter "what"; there are apiGroup, '),
            ("verb=get&verb=list&resource=pods", 'the parameter "verb" is repeated'),
            ("verb=get&resource=pods&group=x", "uid and group are those of a user"),
            ("verb=get&resource=pods/log&subresource=log", "the subresource is named twice"),
            ("verb=get&resource=a.b&apiGroup=b", "the API group is named twice"),
            ("verb=get&resource=pods&labelSelector=((", "found '(', expected: "),
            ("verb=get&resource=pods&output=yaml", "output must be json or text"),
            ("verb=get&resource=" + "x" * 9000, "the query is longer than 8192 bytes"),
        ):
            code, answer = self.ask("alice", "GET", query)
            self.assertEqual(code, 400, query)
            self.assertIn(part, answer["message"])
        self.assertEqual(self.ask("alice", "POST", "verb=get&resource=pods")[0], 405)

    def test_asked(self) -> None:
        """The answer repeats the question: the groups that everyone is in, the API group of the resource."""
        asked = self.why("user=bob&group=a&group=b&verb=get&resource=roles&namespace=ns&name=x")["asked"]
        self.assertEqual(asked["groups"], ["a", "b", "system:authenticated"])
        self.assertEqual(
            (asked["apiGroup"], asked["resource"], asked["namespace"], asked["name"]), (GROUP, "roles", "ns", "x")
        )
        asked = self.why("user=system:serviceaccount:ns:robot&verb=get&resource=deployments.apps/scale")["asked"]
        self.assertEqual(
            asked["groups"], ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        )
        self.assertEqual((asked["apiGroup"], asked["resource"], asked["subresource"]), ("apps", "deployments", "scale"))
        asked = self.why("verb=list&resource=roles&apiGroup=&fieldSelector=a%3Db&labelSelector=c")["asked"]
        self.assertEqual((asked["user"], asked["apiGroup"]), ("alice", ""))
        self.assertEqual((asked["fieldSelector"], asked["labelSelector"]), (["a=b"], ["c"]))
        self.assertEqual(self.why("verb=get&path=/metrics")["asked"]["path"], "/metrics")


class AllowedTests(WhyTestCase):
    """What allows."""

    def test_rbac(self) -> None:
        """RBAC's rule, role, binding and subject are named."""
        self.make(ROLES, role("maps", rule("get", "secrets"), rule("list get", "configmaps")))
        self.make(BINDINGS, binding("readers", "Role/maps", "User/bob", "Group/qa"))
        answer = self.why("user=eve&group=qa&verb=list&resource=configmaps&namespace=default")
        self.assertTrue(answer["allowed"])
        self.assertEqual(answer["decidedBy"], "RBAC")
        subject = answer["allowedBy"].pop("subject")
        self.assertEqual((subject["kind"], subject["name"]), ("Group", "qa"))
        self.assertEqual(
            answer["allowedBy"],
            {
                "binding": {"kind": "RoleBinding", "namespace": "default", "name": "readers"},
                "role": {"kind": "Role", "namespace": "default", "name": "maps"},
                "ruleIndex": 1,
                "rule": rule("list get", "configmaps"),
            },
        )
        self.assertEqual(
            [(one["name"], one["decision"]) for one in answer["authorizers"]],
            [("PrivilegedGroup", "no opinion"), ("Node", "no opinion"), ("RBAC", "allow")],
        )

    def test_others(self) -> None:
        """So are the privileged group, and the line of a policy file."""
        answer = self.why("user=root&group=system:masters&verb=delete&resource=nodes")
        self.assertEqual(answer["decidedBy"], "PrivilegedGroup")
        answer = self.why("user=carol&verb=get&resource=events&namespace=ns&apiGroup=")
        self.assertEqual(answer["decidedBy"], "ABAC")
        self.assertEqual(answer["allowedBy"], {"policy": {"line": 1, "user": "carol", "group": ""}})

    def test_path(self) -> None:
        """Paths are explained like resources."""
        self.make(f"{API}/clusterroles", role("logs", {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}))
        self.make(f"{API}/clusterrolebindings", binding("c", "ClusterRole/logs", "User/bob"))
        self.assertEqual(self.why("user=bob&verb=get&path=/logs/a")["allowedBy"]["role"]["name"], "logs")
        self.assertEqual(
            self.misses("user=bob&verb=get&path=/metrics")[0],
            (
                "path",
                'rule 0 of ClusterRole "logs", which the user has by ClusterRoleBinding "c",'
                ' allows the paths "/logs/*", but not the path "/metrics"',
            ),
        )


class MissTests(WhyTestCase):
    """What comes near."""

    def setUp(self) -> None:
        """With a role that bob has."""
        super().setUp()
        self.make(ROLES, role("maps", rule("get", "configmaps"), rule("get", "pods", resourceNames=["a"])))
        self.make(BINDINGS, binding("readers", "Role/maps", "User/bob"))

    def test_own(self) -> None:
        """A rule of the user that lacks only the verb, the name, the subresource or the API group is named."""
        start = (
            'rule {} of Role "maps", which the user has by RoleBinding "readers" in the namespace "default", allows '
        )
        where = "user=bob&namespace=default"
        for query, missing, text in (
            ("verb=list&resource=configmaps", "verb", f'{start.format(0)}"get", but not "list"'),
            (
                "verb=get&resource=pods&name=b",
                "resourceName",
                f'{start.format(1)}the names "a", but not for the name "b"',
            ),
            (
                "verb=get&resource=configmaps/status",
                "subresource",
                f'{start.format(0)}"configmaps", but not "configmaps/status"',
            ),
            (
                "verb=get&resource=configmaps.example.com",
                "apiGroup",
                f'{start.format(0)}API groups "", but not in the API group "example.com"',
            ),
        ):
            self.assertEqual(self.misses(f"{where}&{query}"), [(missing, text)])
        self.assertEqual(self.misses(f"{where}&verb=list&resource=secrets"), [])

    def test_namespace(self) -> None:
        """A rule that the user has in another namespace is named."""
        has = 'the user has it by RoleBinding "readers" in the namespace "default"'
        for where, text in (("namespace=other", 'not in the namespace "other"'), ("", "not cluster-wide")):
            self.assertEqual(
                self.misses(f"user=bob&verb=get&resource=configmaps&{where}"),
                [("namespace", f'rule 0 of Role "maps" allows it, but {has}, {text}')],
            )

    def test_subject(self) -> None:
        """A rule that others have is named, those first whose names resemble the user's."""
        self.make(BINDINGS, binding("wrong", "Role/maps", "Group/Eve"))
        answer = self.why("user=eve&verb=get&resource=configmaps&namespace=default")
        self.assertEqual(
            [miss["why"] for miss in answer["nearMisses"]],
            [
                'rule 0 of Role "maps" allows it, but RoleBinding "wrong" in the namespace "default" is about others:'
                ' Group "Eve" resembles the user, but is another',
                'rule 0 of Role "maps" allows it, but RoleBinding "readers" in the namespace "default" is about others',
            ],
        )
        self.assertEqual(answer["nearMisses"][0]["subjects"][0]["kind"], "Group")

    def test_account_in_another_namespace(self) -> None:
        """An account of the same name in another namespace resembles the user."""
        self.make(BINDINGS, binding("robots", "Role/maps", "ServiceAccount/robot"))
        misses = self.misses("user=system:serviceaccount:ns:robot&verb=get&resource=configmaps&namespace=default")
        self.assertIn('ServiceAccount "robot" resembles the user', misses[0][1])

    def test_missing_role(self) -> None:
        """A binding of the user whose role is not there comes first."""
        self.make(BINDINGS, binding("broken", "Role/gone", "User/bob"))
        missing, text = self.misses("user=bob&verb=list&resource=configmaps&namespace=default")[0]
        self.assertEqual(missing, "role")
        self.assertEqual(
            text,
            'RoleBinding "broken" in the namespace "default" is about the user, but its role is not there:'
            f' role.{GROUP} "gone" not found',
        )

    def test_unbound(self) -> None:
        """A role that nobody has is named last."""
        self.make(f"{API}/clusterroles", role("all", rule("*", "*", ["*"])))
        misses = self.misses("user=bob&verb=list&resource=configmaps&namespace=default")
        self.assertEqual([missing for missing, _ in misses], ["verb", "binding"])
        self.assertEqual(misses[1][1], 'rule 0 of ClusterRole "all" allows it, but no binding refers to this role')

    def test_system_roles(self) -> None:
        """Roles that parts of the system have come behind those that anyone may be given."""
        self.make(f"{API}/clusterroles", role("system:part", rule("*", "*", ["*"])))
        self.make(f"{API}/clusterrolebindings", binding("system:part", "ClusterRole/system:part", "User/part"))
        self.make(f"{API}/clusterroles", role("view", rule("list", "configmaps")))
        misses = self.misses("user=eve&verb=list&resource=configmaps&namespace=default")
        self.assertEqual([missing for missing, _ in misses], ["binding", "subject"])
        self.assertIn('"system:part"', misses[1][1])

    def test_controllers_last(self) -> None:
        """Roles of controllers come after those of other components of the system."""
        for name in ("system:controller:x", "system:part"):
            self.make(f"{API}/clusterroles", role(name, rule("list", "configmaps")))
            self.make(f"{API}/clusterrolebindings", binding(name, f"ClusterRole/{name}", "User/part"))
        (first, second) = self.misses("user=eve&verb=list&resource=configmaps&namespace=default")
        self.assertIn('"system:part"', first[1])
        self.assertIn('"system:controller:x"', second[1])

    def test_policy_file(self) -> None:
        """Lines of a policy file come near, too."""
        misses = self.misses("user=carol&verb=delete&resource=events&namespace=ns&apiGroup=")
        self.assertEqual(misses, [("verb", "line 1 allows reading alone")])
        misses = self.misses("user=eve&verb=get&resource=events&namespace=ns&apiGroup=")
        self.assertEqual(misses, [("subject", "line 1 allows it, but to others")])

    def test_bounded(self) -> None:
        """However many come near, a few of the nearest are told; however many rules, others get their turn."""
        self.patch(why, "SLICE", 3)
        for number in range(30):
            self.make(BINDINGS, binding(f"b{number}", "Role/maps", f"User/u{number}"))
        client = JSONClient(self.site)
        client.channel.dataReceived(
            f"GET {WHY}?user=bob&verb=list&resource=configmaps&namespace=default HTTP/1.1\r\n"
            "Host: x\r\nAuthorization: Bearer alice\r\n\r\n".encode()
        )
        self.assertEqual(client.answers(), [])
        while not (answers := client.answers()):
            self.server.clock.advance(0)
        self.assertIn(b'"missing": "verb"', answers[0].body)
        query = "user=eve&verb=get&resource=configmaps&namespace=default"
        self.patch(why, "SLICE", 500)
        self.assertEqual(len(self.why(query)["nearMisses"]), why.MOST_MISSES)
        self.patch(why, "MOST_RULES", 400)
        self.assertIn("only 400 rules", self.why(query)["incomplete"])

    def test_long_rules(self) -> None:
        """Of a long rule the beginning is shown."""
        names = [f"n{number}" for number in range(1000)]
        self.make(ROLES, role("long", rule("get", "secrets", resourceNames=names)))
        self.make(BINDINGS, binding("long", "Role/long", "User/bob"))
        answer = self.why("user=bob&verb=get&resource=secrets&namespace=default&name=x")
        (miss,) = answer["nearMisses"]
        self.assertEqual(len(miss["rule"]["resourceNames"]), 21)
        self.assertEqual(miss["rule"]["resourceNames"][-1], "... and 980 more")


class GrantTests(WhyTestCase):
    """Grants of the user, and the command that grants access."""

    def test_grants(self) -> None:
        """Grants that name the user come before those of groups."""
        self.make(ROLES, role("maps", rule("get", "configmaps")))
        self.make(BINDINGS, binding("a-group", "Role/maps", "Group/qa"))
        self.make(BINDINGS, binding("b-user", "Role/maps", "User/bob"))
        answer = self.why("user=bob&group=qa&verb=list&resource=secrets&namespace=default")
        self.assertEqual(
            [grant["text"] for grant in answer["grants"]],
            [
                'Role "maps" by RoleBinding "b-user" in the namespace "default"',
                'Role "maps" by RoleBinding "a-group" in the namespace "default", as a member of "qa"',
            ],
        )

    def test_remedy_binds_the_smallest_role(self) -> None:
        """The command binds the role with the fewest rules among those that allow the request, but no system role."""
        self.make(f"{API}/clusterroles", role("a-large", rule("get", "secrets"), rule("get", "pods")))
        self.make(f"{API}/clusterroles", role("b-small", rule("get", "pods")))
        self.make(f"{API}/clusterroles", role("system:part", rule("get", "pods")))
        query = "verb=get&resource=pods&namespace=ns"
        self.assertEqual(
            self.why(f"user=bob&{query}")["remedy"],
            "kubectl create rolebinding bob-b-small --clusterrole=b-small --user=bob --namespace=ns",
        )
        self.assertEqual(
            self.why(f"user=system:serviceaccount:ns:robot&{query}")["remedy"],
            "kubectl create rolebinding robot-b-small --clusterrole=b-small --serviceaccount=ns:robot --namespace=ns",
        )

    def test_remedy_creates_a_role(self) -> None:
        """If no role allows the request, the commands create one that allows nothing else."""
        for query, role_flags, where in (
            ("resource=nodes/proxy", "clusterrole get-nodes-proxy --verb=get --resource=nodes/proxy", ""),
            ("path=/metrics", "clusterrole get-metrics --verb=get --non-resource-url=/metrics", ""),
            (
                "resource=deployments&namespace=ns&name=web",
                "role get-deployments-apps --verb=get --resource=deployments.apps --resource-name=web",
                " --namespace=ns",
            ),
        ):
            create, bind = self.why(f"user=a%20b&verb=get&{query}")["remedy"].splitlines()
            self.assertEqual(create, f"kubectl create {role_flags}{where}")
            name = role_flags.split()[1]
            kind = role_flags.split()[0]
            self.assertEqual(bind, f"kubectl create {kind}binding a-b-{name} --{kind}={name} '--user=a b'{where}")


class TextTests(WhyTestCase):
    """What people are told."""

    def test_denied(self) -> None:
        """Who was asked, and what comes near, in sentences."""
        self.make(ROLES, role("maps", rule("get", "configmaps")))
        self.make(BINDINGS, binding("readers", "Role/maps", "User/bob"))
        query = "user=bob&verb=list&resource=configmaps&namespace=default"
        text = self.text(query, Accept="text/plain")
        self.assertEqual(
            text,
            'User "bob" with groups ["system:authenticated"] may not "list" the resource "configmaps"'
            ' in the namespace "default".\n\nAsked:\n'
            "  PrivilegedGroup  no opinion\n  Node             no opinion\n  RBAC             no opinion\n"
            "  ABAC             no opinion: No policy matched.\n\nThe user has:\n"
            '  Role "maps" by RoleBinding "readers" in the namespace "default"\n\nNearest misses:\n'
            '  1. rule 0 of Role "maps", which the user has by RoleBinding "readers" in the namespace "default",'
            ' allows "get", but not "list"\n\nTo allow it:\n'
            "  kubectl create role list-configmaps --verb=list --resource=configmaps --namespace=default\n"
            "  kubectl create rolebinding bob-list-configmaps --role=list-configmaps --user=bob --namespace=default\n",
        )
        self.assertEqual(self.text(f"{query}&output=text"), text)
        self.assertIn("No rule comes near.", self.text("user=x&verb=get&path=/nowhere&output=text"))

    def test_allowed(self) -> None:
        """What allowed it, likewise."""
        text = self.text("verb=create&resource=subjectaccessreviews", Accept="text/plain, application/json")
        self.assertIn('User "alice"', text)
        self.assertIn('may "create" the resource', text)
        self.assertIn('  binding: kind "ClusterRoleBinding", name "reviewers"\n', text)

    def test_json_first(self) -> None:
        """Who takes anything gets JSON, indented, with a newline at its end."""
        answer = JSONClient(self.site).answer(
            "GET", f"{WHY}?verb=get&resource=pods", Authorization="Bearer alice", Accept="application/json, */*"
        )
        self.assertEqual(answer.header("Content-Type"), "application/json")
        self.assertTrue(answer.body.endswith(b"}\n"))
        self.assertIn(b'\n  "apiVersion": "kubetwist/v1"', answer.body)
