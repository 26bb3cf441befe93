"""Tests of L{kubetwist.server.endpoints.why} and L{kubetwist.authorization._rbacexplain}."""

from __future__ import annotations

from kubetwist.filters.authorization import WHY
from kubetwist.registry.rbac.ruleresolver import GROUP
from tests.registry.rbac.rbacserver import API, binding, role, rule
from tests.resources.server import JSONClient
from tests.server.endpoints.whycase import BINDINGS, ROLES, WhyTestCase


class QuestionTests(WhyTestCase):
    """Access and queries."""

    def test_access(self) -> None:
        """Access requires permission to create a SubjectAccessReview."""
        self.why("user=bob&verb=get&resource=pods")
        code, answer = self.ask("bob", "GET", "user=bob&verb=get&resource=pods")
        self.assertEqual(code, 403)
        self.assertIn(
            'cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io"', answer["message"]
        )
        self.why("verb=get&resource=pods", user="admin")

    def test_invalid(self) -> None:
        """An invalid query is answered with a 400 and the reason."""
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

    def test_attributes(self) -> None:
        """The response contains the evaluated attributes: implied groups and API group included."""
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
    """Explanations of allowed requests."""

    def test_rbac(self) -> None:
        """The rule, role, binding and subject of RBAC are named."""
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

    def test_other_authorizers(self) -> None:
        """The privileged group and the line of a policy file are named."""
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


class TextTests(WhyTestCase):
    """Explanations as text."""

    def test_denied(self) -> None:
        """A denied request is explained with the authorizers and the nearest misses."""
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
        """An allowed request is explained with the rule."""
        text = self.text("verb=create&resource=subjectaccessreviews", Accept="text/plain, application/json")
        self.assertIn('User "alice"', text)
        self.assertIn('may "create" the resource', text)
        self.assertIn('  binding: kind "ClusterRoleBinding", name "reviewers"\n', text)

    def test_json_first(self) -> None:
        """A client without a preference gets indented JSON with a final newline."""
        answer = JSONClient(self.site).answer(
            "GET", f"{WHY}?verb=get&resource=pods", Authorization="Bearer alice", Accept="application/json, */*"
        )
        self.assertEqual(answer.header("Content-Type"), "application/json")
        self.assertTrue(answer.body.endswith(b"}\n"))
        self.assertIn(b'\n  "apiVersion": "kubetwist/v1"', answer.body)
