"""Tests for L{kubetwist.audit.policy}."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.audit.policy import (
    LEVELS,
    METADATA,
    NONE,
    REQUEST,
    REQUEST_RESPONSE,
    BadPolicy,
    Policy,
    path_matches,
    read_policy,
)
from kubetwist.http.requestinfo import RequestInfo, request_info_of

JANE = UserInfo("jane", groups=("devs", "system:authenticated"))


def policy(*rules: Any, **remaining: Any) -> Policy:
    """Return a policy with some rules."""
    value = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, **remaining}
    return read_policy(json.dumps(value).encode())


def get(path: str, method: bytes = b"GET") -> RequestInfo:
    """Return the attributes of a request."""
    return request_info_of(method, path.encode())


def level(policy: Policy, path: str, user: UserInfo | None = JANE, method: bytes = b"GET") -> int:
    """Return the audit level of a request."""
    return policy.evaluate_policy_rule(get(path, method), user).level


POD = "/api/v1/namespaces/ns/pods/web"


class RuleTests(SynchronousTestCase):
    """Tests of the matching of rules."""

    def test_first(self) -> None:
        """The first matching rule decides; without one the level is None."""
        result = policy({"level": "Request", "verbs": ["get"]}, {"level": "Metadata", "verbs": ["get", "list"]})
        self.assertEqual(level(result, POD), REQUEST)
        self.assertEqual(level(result, "/api/v1/pods"), METADATA)
        self.assertEqual(level(result, POD, method=b"DELETE"), NONE)

    def test_users_and_groups(self) -> None:
        """Rules match users by name and members of any listed group; unauthenticated requests match neither."""
        by_name = policy({"level": "Metadata", "users": ["jane"]})
        by_group = policy({"level": "Metadata", "userGroups": ["x", "devs"]})
        for one in (by_name, by_group):
            self.assertEqual(level(one, POD), METADATA)
            self.assertEqual(level(one, POD, UserInfo("joe", groups=("ops",))), NONE)
            self.assertEqual(level(one, POD, None), NONE)
        self.assertEqual(level(policy({"level": "Metadata"}), POD, None), METADATA)

    def test_resources(self) -> None:
        """Resources match alone, with a subresource, with C{/*} or with C{*/}; groups can be C{*}."""
        log = f"{POD}/log"
        scale = "/apis/apps/v1/namespaces/ns/deployments/web/scale"
        for group, resource, fits in (
            ("", "pods", {POD}),
            ("", "pods/log", {log}),
            ("", "pods/*", {POD, log}),
            ("", "*/log", {log}),
            ("", "*", {POD, log}),
            ("*", "*/scale", {scale}),
            ("apps", "deployments", set()),
            ("extensions", "*", set()),
        ):
            result = policy({"level": "Metadata", "resources": [{"group": group, "resources": [resource]}]})
            reported = {path for path in (POD, log, scale) if level(result, path)}
            self.assertEqual(reported, fits, (group, resource))
        policy_of_all_rules = policy({"level": "Metadata", "resources": [{"group": "apps"}]})
        self.assertEqual((level(policy_of_all_rules, scale), level(policy_of_all_rules, POD)), (METADATA, NONE))

    def test_names(self) -> None:
        """Resource names restrict a rule, also after cached decisions about other names."""
        result = policy({"level": "Metadata", "resources": [{"resources": ["pods"], "resourceNames": ["web"]}]})
        self.assertEqual([level(result, f"/api/v1/namespaces/ns/pods/{name}") for name in ("db", "web")], [0, 1])

    def test_namespaces(self) -> None:
        """The empty namespace matches cluster-scoped resources; non-resource requests have no namespace."""
        none = policy({"level": "Metadata", "namespaces": [""]})
        self.assertEqual([level(none, path) for path in ("/api/v1/nodes", POD, "/version")], [1, 0, 0])
        some = policy({"level": "Metadata", "namespaces": ["ns"]})
        self.assertEqual([level(some, path) for path in ("/api/v1/nodes", POD)], [0, 1])

    def test_paths(self) -> None:
        """Non-resource URLs match exactly or as a prefix, and match no resources."""
        result = policy({"level": "Metadata", "nonResourceURLs": ["/version", "/healthz*"]})
        reported = [level(result, path) for path in ("/version", "/version/x", "/healthz", "/healthz/etcd", POD)]
        self.assertEqual(reported, [1, 0, 1, 1, 0])
        self.assertEqual(level(policy({"level": "Metadata", "nonResourceURLs": ["*"]}), "/"), 1)

    def test_settings(self) -> None:
        """Stages of the policy and of the rule are omitted; the rule overrides omitManagedFields."""
        result = policy(
            {"level": "Request", "verbs": ["get"], "omitStages": ["Panic"], "omitManagedFields": False},
            {"level": "Metadata"},
            omitStages=["RequestReceived"],
            omitManagedFields=True,
        )
        first, second = (result.evaluate_policy_rule(get(path), JANE) for path in (POD, "/api/v1/pods"))
        self.assertEqual(first.omit_stages, {"Panic", "RequestReceived"})
        self.assertEqual((first.omit_managed_fields, second.omit_managed_fields), (False, True))
        self.assertEqual(second.omit_stages, {"RequestReceived"})

    @given(
        st.lists(
            st.fixed_dictionaries(
                {"level": st.sampled_from(LEVELS)},
                optional={
                    "users": st.lists(st.sampled_from(["jane", "joe"]), max_size=2),
                    "verbs": st.lists(st.sampled_from(["get", "list", "delete"]), max_size=2),
                    "namespaces": st.lists(st.sampled_from(["", "ns"]), max_size=2),
                    "resources": st.lists(
                        st.fixed_dictionaries({"resources": st.lists(st.sampled_from(["pods", "nodes", "pods/*"]))}),
                        max_size=2,
                    ),
                },
            ),
            min_size=1,
            max_size=5,
        ),
        st.lists(st.sampled_from([POD, f"{POD}/log", "/api/v1/nodes", "/api/v1/pods", "/version"]), min_size=1),
        st.sampled_from([JANE, UserInfo("joe"), None]),
    )
    def test_agrees_with_single_rules(self, rules: list[Any], paths: list[str], user: UserInfo | None) -> None:
        """The result is the result of the first rule that matches alone, cached or not."""
        policy_of_all_rules = policy(*rules)
        alone = [policy(rule, {"level": "None", "omitStages": ["Panic"]}) for rule in rules]
        for path in [*paths, *paths]:
            info = get(path)
            levels = (
                LEVELS.index(rule["level"])
                for rule, one in zip(rules, alone, strict=True)
                if not one.evaluate_policy_rule(info, user).omit_stages
            )
            self.assertEqual(policy_of_all_rules.evaluate_policy_rule(info, user).level, next(levels, NONE))

    @given(st.text("/a*", max_size=6), st.text("/a", max_size=6))
    def test_patterns(self, pattern: str, path: str) -> None:
        """A pattern without a trailing C{*} matches only itself."""
        if not pattern.endswith("*"):
            self.assertEqual(path_matches(path, pattern), path == pattern)


class ReadingTests(SynchronousTestCase):
    """Tests for L{read_policy}."""

    def error_text(self, content: str) -> str:
        """Return the error for a policy."""
        return str(self.assertRaises(BadPolicy, read_policy, content.encode()))

    def rules(self, rules: str, fields: str = "") -> str:
        """Return the error for a list of rules."""
        return self.error_text(f"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n{fields}")

    def test_yaml(self) -> None:
        """YAML is accepted, and nulls are ignored."""
        result = read_policy(
            b"apiVersion: audit.k8s.io/v1\nkind: Policy\nmetadata: {name: x}\nomitStages: null\n"
            b"rules:\n- level: RequestResponse\n  users: null\n"
        )
        self.assertEqual(level(result, POD), REQUEST_RESPONSE)

    def test_kinds(self) -> None:
        """Other kinds and versions are rejected, and documents without them."""
        self.assertEqual(
            self.error_text("kind: Policy"), "failed decoding: Object 'apiVersion' is missing in \"{'kind': 'Policy'}\""
        )
        self.assertIn(
            'no kind "Policy" is registered for version "audit.k8s.io/v1beta1"',
            self.error_text("kind: Policy\napiVersion: audit.k8s.io/v1beta1"),
        )
        self.assertIn("Object 'Kind' is missing", self.error_text(""))
        self.assertIn("cannot unmarshal array", self.error_text("[]"))
        self.assertIn("yaml: ", self.error_text("a: [1"))

    def test_values(self) -> None:
        """All invalid rules are reported with the texts of the reference."""
        self.assertEqual(self.rules("[]"), "loaded illegal policy with 0 rules")
        self.assertEqual(self.rules("[{}]"), "rules[0].level: Required value")
        self.assertEqual(
            self.rules("[{level: metadata}]"),
            'rules[0].level: Unsupported value: "metadata": supported values: "None", "Metadata", "Request",'
            ' "RequestResponse"',
        )
        self.assertEqual(
            self.rules("[{level: None, nonResourceURLs: [version, '/a*/b'], namespaces: [x]}]"),
            "[rules[0].nonResourceURLs[0]: Invalid value: \"version\": non-resource URL rules must begin with a '/'"
            " character, rules[0].nonResourceURLs[1]: Invalid value: \"/a*/b\": non-resource URL wildcards '*' must be"
            ' the final character of the rule, rules[0].nonResourceURLs: Invalid value: ["version","/a*/b"]: rules'
            " cannot apply to both regular resources and non-resource URLs]",
        )
        self.assertIn(
            'rules[0].resources.group: Invalid value: "rbac.authorization.k8s.io/v1": a lowercase RFC 1123 subdomain',
            self.rules("[{level: None, resources: [{group: rbac.authorization.k8s.io/v1}]}]"),
        )
        self.assertEqual(
            self.rules("[{level: None, resources: [{resourceNames: [a]}]}]"),
            'rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one'
            " resource",
        )
        self.assertEqual(
            self.rules("[{level: None, omitStages: [x]}]"),
            'rules[0].omitStages[0]: Invalid value: "x": allowed stages are'
            " RequestReceived,ResponseStarted,ResponseComplete,Panic",
        )

    def test_types(self) -> None:
        """Values of the wrong type are rejected with the texts of Go."""
        self.assertEqual(
            self.rules("[{level: None, users: jane}]"),
            "failed decoding: json: cannot unmarshal string into Go struct field PolicyRule.rules.users of type"
            " []string",
        )
        self.assertIn("Policy.rules of type []v1.PolicyRule", self.rules("{}"))
        self.assertIn(
            "cannot unmarshal number into Go struct field PolicyRule.rules.verbs of type string",
            self.rules("[{level: None, verbs: [1]}]"),
        )

    def test_unknown(self) -> None:
        """Unknown fields are logged and ignored."""
        reported: list[Any] = []
        globalLogPublisher.addObserver(reported.append)
        self.addCleanup(globalLogPublisher.removeObserver, reported.append)
        result = policy({"level": "Metadata", "user": ["joe"]})
        self.assertEqual(level(result, POD), METADATA)
        self.assertIn('unknown field "rules[0].user"', [entry.get("errors", "") for entry in reported])
