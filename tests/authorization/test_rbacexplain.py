"""Tests for L{kubetwist.authorization._rbacexplain}."""

from __future__ import annotations

from kubetwist.filters.authorization import WHY
from kubetwist.registry.rbac.ruleresolver import GROUP
from kubetwist.server.endpoints import why
from tests.registry.rbac.rbacserver import API, binding, role, rule
from tests.resources.server import JSONClient
from tests.server.endpoints.whycase import BINDINGS, ROLES, WhyTestCase


class MissTests(WhyTestCase):
    """Tests of near misses."""

    def setUp(self) -> None:
        """Create a role that is bound to bob."""
        super().setUp()
        self.make(ROLES, role("maps", rule("get", "configmaps"), rule("get", "pods", resourceNames=["a"])))
        self.make(BINDINGS, binding("readers", "Role/maps", "User/bob"))

    def test_own(self) -> None:
        """A rule of the user that lacks only the verb, the name, the subresource or the API group is a near miss."""
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
        """A rule that the user has in another namespace is a near miss."""
        has = 'the user has it by RoleBinding "readers" in the namespace "default"'
        for where, text in (("namespace=other", 'not in the namespace "other"'), ("", "not cluster-wide")):
            self.assertEqual(
                self.misses(f"user=bob&verb=get&resource=configmaps&{where}"),
                [("namespace", f'rule 0 of Role "maps" allows it, but {has}, {text}')],
            )

    def test_other_subject(self) -> None:
        """A rule with other subjects is a near miss; subjects that resemble the user come first."""
        self.make(BINDINGS, binding("wrong", "Role/maps", "Group/Eve"))
        answer = self.why("user=eve&verb=get&resource=configmaps&namespace=default")
        self.assertEqual(
            [miss["why"] for miss in answer["nearMisses"]],
            [
                'rule 0 of Role "maps" allows it, but RoleBinding "wrong" in the namespace "default" has other'
                ' subjects: Group "Eve" resembles the user, but is different',
                'rule 0 of Role "maps" allows it, but RoleBinding "readers" in the namespace "default" has other'
                " subjects",
            ],
        )
        self.assertEqual(answer["nearMisses"][0]["subjects"][0]["kind"], "Group")

    def test_account_in_another_namespace(self) -> None:
        """An account of the same name in another namespace resembles the user."""
        self.make(BINDINGS, binding("robots", "Role/maps", "ServiceAccount/robot"))
        misses = self.misses("user=system:serviceaccount:ns:robot&verb=get&resource=configmaps&namespace=default")
        self.assertIn('ServiceAccount "robot" resembles the user', misses[0][1])

    def test_missing_role(self) -> None:
        """A binding of the user whose role does not exist comes first."""
        self.make(BINDINGS, binding("broken", "Role/gone", "User/bob"))
        missing, text = self.misses("user=bob&verb=list&resource=configmaps&namespace=default")[0]
        self.assertEqual(missing, "role")
        self.assertEqual(
            text,
            'RoleBinding "broken" in the namespace "default" is for the user, but its role does not exist:'
            f' role.{GROUP} "gone" not found',
        )

    def test_unbound(self) -> None:
        """An unbound role is listed last."""
        self.make(f"{API}/clusterroles", role("all", rule("*", "*", ["*"])))
        misses = self.misses("user=bob&verb=list&resource=configmaps&namespace=default")
        self.assertEqual([missing for missing, _ in misses], ["verb", "binding"])
        self.assertEqual(misses[1][1], 'rule 0 of ClusterRole "all" allows it, but no binding refers to this role')

    def test_system_roles(self) -> None:
        """Roles of system components come after other roles."""
        self.make(f"{API}/clusterroles", role("system:part", rule("*", "*", ["*"])))
        self.make(f"{API}/clusterrolebindings", binding("system:part", "ClusterRole/system:part", "User/part"))
        self.make(f"{API}/clusterroles", role("view", rule("list", "configmaps")))
        misses = self.misses("user=eve&verb=list&resource=configmaps&namespace=default")
        self.assertEqual([missing for missing, _ in misses], ["binding", "subject"])
        self.assertIn('"system:part"', misses[1][1])

    def test_controllers_last(self) -> None:
        """Roles of controllers come after roles of other system components."""
        for name in ("system:controller:x", "system:part"):
            self.make(f"{API}/clusterroles", role(name, rule("list", "configmaps")))
            self.make(f"{API}/clusterrolebindings", binding(name, f"ClusterRole/{name}", "User/part"))
        (first, second) = self.misses("user=eve&verb=list&resource=configmaps&namespace=default")
        self.assertIn('"system:part"', first[1])
        self.assertIn('"system:controller:x"', second[1])

    def test_policy_file(self) -> None:
        """Lines of an ABAC policy file are near misses, too."""
        misses = self.misses("user=carol&verb=delete&resource=events&namespace=ns&apiGroup=")
        self.assertEqual(misses, [("verb", "line 1 only allows to read")])
        misses = self.misses("user=eve&verb=get&resource=events&namespace=ns&apiGroup=")
        self.assertEqual(misses, [("subject", "line 1 allows it, but for another subject")])

    def test_bounded(self) -> None:
        """A limited number of near misses is returned, and the search yields to the reactor."""
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
        self.assertEqual(len(self.why(query)["nearMisses"]), why.MAX_MISSES)
        self.patch(why, "MAX_RULES", 400)
        self.assertIn("only 400 rules", self.why(query)["incomplete"])

    def test_long_rules(self) -> None:
        """The lists of a long rule are clipped."""
        names = [f"n{number}" for number in range(1000)]
        self.make(ROLES, role("long", rule("get", "secrets", resourceNames=names)))
        self.make(BINDINGS, binding("long", "Role/long", "User/bob"))
        answer = self.why("user=bob&verb=get&resource=secrets&namespace=default&name=x")
        (miss,) = answer["nearMisses"]
        self.assertEqual(len(miss["rule"]["resourceNames"]), 21)
        self.assertEqual(miss["rule"]["resourceNames"][-1], "... and 980 more")


class GrantTests(WhyTestCase):
    """Tests of grants of the user, and of the command that grants access."""

    def test_grants(self) -> None:
        """Grants that name the user come before grants of groups."""
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
