"""Tests for L{kubetwist.api.rbacrules}."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes
from kubetwist.api.rbacrules import (
    FULL_AUTHORITY,
    RoleRules,
    allows,
    compact_rules,
    compact_string,
    escalation_message,
    uncovered_rules,
)
from kubetwist.api.resource import UserInfo

ALICE = UserInfo("alice")
VERBS = ("get", "list", "create")
GROUPS = ("", "apps", "batch")
RESOURCES = ("pods", "pods/log", "deployments", "deployments/scale")
NAMES = ("", "a", "b")
PATHS = ("/healthz", "/healthz/etcd", "/metrics", "/")


def some(*words: str) -> st.SearchStrategy[list[str]]:
    """Return a strategy for a few of the words."""
    return st.lists(st.sampled_from(words), max_size=3)


resource_rules = st.fixed_dictionaries(
    {"verbs": some(*VERBS, "*"), "apiGroups": some(*GROUPS, "*")},
    optional={"resources": some(*RESOURCES, "*", "*/log", "*/scale", "pods/*"), "resourceNames": some("a", "b")},
)
path_rules = st.fixed_dictionaries(
    {"verbs": some(*VERBS, "*"), "nonResourceURLs": some(*PATHS, "*", "/healthz/*", "/h*", "/m")}
)
rules = st.lists(resource_rules | path_rules, max_size=4)


def all_requests() -> list[AuthorizerAttributes]:
    """Return attributes for all combinations of these words."""
    attributes = [
        AuthorizerAttributes(
            ALICE,
            verb,
            group=group,
            resource=resource.partition("/")[0],
            subresource=resource.partition("/")[2],
            name=name,
        )
        for verb, group, resource, name in product(VERBS, GROUPS, RESOURCES, NAMES)
    ]
    attributes += [
        AuthorizerAttributes(ALICE, verb, path=path, is_resource_request=False) for verb in VERBS for path in PATHS
    ]
    return attributes


REQUESTS = all_requests()


def naive_allows(rule: dict[str, Any], request: AuthorizerAttributes) -> bool:
    """Return whether a rule allows a request, with each star expanded to all words."""
    verbs = set(rule["verbs"]) | (set(VERBS) if "*" in rule["verbs"] else set())
    if request.verb not in verbs:
        return False
    if not request.is_resource_request:
        patterns = rule.get("nonResourceURLs", [])
        spelled = {path for path in PATHS for one in patterns if one[-1] == "*" and path[: len(one) - 1] == one[:-1]}
        return request.path in spelled | set(patterns)
    groups = set(rule.get("apiGroups", [])) | (set(GROUPS) if "*" in rule.get("apiGroups", []) else set())
    resources = set(rule.get("resources", []))
    if "*" in resources:
        resources |= set(RESOURCES)
    for whole in RESOURCES:
        _, slash, subresource = whole.partition("/")
        if slash and f"*/{subresource}" in resources:
            resources.add(whole)
    resource = "/".join(filter(None, (request.resource, request.subresource)))
    named = not rule.get("resourceNames") or request.name in rule["resourceNames"]
    return request.group in groups and resource in resources and named


class AllowsTests(SynchronousTestCase):
    """Tests for L{allows} and L{RoleRules}."""

    @settings(max_examples=60, deadline=None)
    @given(rules)
    def test_model(self, given_rules: list[dict[str, Any]]) -> None:
        """
        A rule allows exactly the requests that its words and stars match, and a role what any of its rules allows.
        """
        role = RoleRules(given_rules)
        for request in REQUESTS:
            expected = [naive_allows(rule, request) for rule in given_rules]
            self.assertEqual([allows(rule, request) for rule in given_rules], expected)
            self.assertEqual(role.allow(request), any(expected), request)

    def test_star_within_resource(self) -> None:
        """C{pods/*} matches only itself: only C{*} and C{*/scale} are patterns."""
        role = RoleRules([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/*"]}])
        self.assertFalse(role.allow(AuthorizerAttributes(ALICE, "get", resource="pods", subresource="log")))

    def test_named_create(self) -> None:
        """A rule for named objects does not allow requests without a name: create and list."""
        rule = {"verbs": ["create", "get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}
        self.assertFalse(allows(rule, AuthorizerAttributes(ALICE, "create", resource="pods")))
        self.assertTrue(allows(rule, AuthorizerAttributes(ALICE, "get", resource="pods", name="a")))


class CoverTests(SynchronousTestCase):
    """Tests for L{uncovered_rules}."""

    @settings(max_examples=80, deadline=None)
    @given(rules, rules)
    def test_sound(self, held: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
        """If no rule is uncovered, the held rules allow all requests that the wanted rules allow."""
        if uncovered_rules(held, wanted):
            return
        for request in REQUESTS:
            if any(naive_allows(rule, request) for rule in wanted):
                self.assertTrue(any(naive_allows(rule, request) for rule in held), request)

    @settings(max_examples=60, deadline=None)
    @given(rules, rules)
    def test_complete(self, held: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
        """Rules cover themselves, and full authority covers all rules."""
        self.assertEqual(uncovered_rules(FULL_AUTHORITY, wanted), [])
        self.assertEqual(uncovered_rules([*held, *wanted], wanted), [])

    @settings(max_examples=60, deadline=None)
    @given(rules, rules)
    def test_missing_completes(self, held: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
        """With the uncovered rules added, no rule is uncovered."""
        self.assertEqual(uncovered_rules([*held, *uncovered_rules(held, wanted)], wanted), [])

    def test_one_rule(self) -> None:
        """A star is covered by a star only, not by a list of all words."""
        held = [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]
        expected = [{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}]
        self.assertEqual(uncovered_rules(held, expected), expected)

    def test_names(self) -> None:
        """A rule for named objects covers neither other names nor all objects."""
        held = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}]
        named = [{**held[0], "resourceNames": ["a", "b"]}]
        everything = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
        self.assertEqual(uncovered_rules(held, named), [{**held[0], "resourceNames": ["b"]}])
        self.assertEqual(uncovered_rules(held, everything), everything)
        self.assertEqual(uncovered_rules(everything, named), [])

    def test_subresources(self) -> None:
        """C{*/scale} covers C{deployments/scale}, but not the deployment."""
        held = [{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"]}]
        expected = [{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale", "deployments"]}]
        self.assertEqual([rule["resources"] for rule in uncovered_rules(held, expected)], [["deployments"]])


class EscalationMessageTests(SynchronousTestCase):
    """Tests for L{escalation_message}, L{compact_rules} and L{compact_string}."""

    def test_text(self) -> None:
        """
        The message has the user, the groups and the missing rules in order, with the verbs of one resource joined.
        """
        missing = uncovered_rules(
            [],
            [
                {"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["secrets"]},
                {"verbs": ["get"], "nonResourceURLs": ["/x"]},
                {"verbs": ["patch"], "apiGroups": ["batch"], "resources": ["jobs/status"], "resourceNames": ["a"]},
            ],
        )
        self.assertEqual(
            escalation_message("alice", ("dev", "qa"), missing),
            'user "alice" (groups=["dev" "qa"]) is attempting to grant RBAC permissions not currently held:\n'
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}\n'
            '{APIGroups:["batch"], Resources:["jobs/status"], ResourceNames:["a"], Verbs:["patch"]}\n'
            '{NonResourceURLs:["/x"], Verbs:["get"]}',
        )

    def test_compact(self) -> None:
        """Rules for several resources are unchanged; duplicate verbs are kept."""
        wide = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes"]}
        narrow = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
        self.assertEqual(compact_rules([narrow, wide, narrow]), [wide, {**narrow, "verbs": ["get", "get"]}])
        self.assertEqual(narrow["verbs"], ["get"])

    def test_compact_string(self) -> None:
        """Only the fields of the rule are printed, quoted as in Go."""
        self.assertEqual(compact_string({"verbs": ['a"b'], "resources": []}), '{Verbs:["a\\"b"]}')
