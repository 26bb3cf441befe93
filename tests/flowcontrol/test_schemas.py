"""Tests of L{kubetwist.flowcontrol.schemas}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.flowcontrol.schemas import FlowSchema, sort_by_precedence
from kubetwist.http.requestinfo import request_info_of

ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}


def schema(rules: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """Return a FlowSchema object."""
    return {
        "metadata": {"name": spec.pop("name", "a"), "uid": "u"},
        "spec": {"priorityLevelConfiguration": {"name": "level"}, "rules": rules, **spec},
    }


def subject(kind: str, **fields: str) -> dict[str, Any]:
    """Return a subject of a rule."""
    return {"kind": kind, {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}[kind]: fields}


class MatchTests(SynchronousTestCase):
    """L{FlowSchema}."""

    def matches(self, rule: dict[str, Any], user: UserInfo, method: bytes, uri: bytes) -> bool:
        """Return whether a rule matches a request."""
        return FlowSchema.from_object(schema([rule])).matches(user, request_info_of(method, uri))

    def test_subjects(self) -> None:
        """Users, groups and service accounts match by name or wildcard."""
        jane = UserInfo("jane", groups=("developers",))
        account = UserInfo("system:serviceaccount:one:default")
        for subjects, user, expected in (
            ([subject("User", name="jane")], jane, True),
            ([subject("User", name="joe")], jane, False),
            ([subject("User", name="*")], jane, True),
            ([subject("Group", name="developers")], jane, True),
            ([subject("Group", name="others"), subject("Group", name="*")], jane, True),
            ([subject("Group", name="others")], jane, False),
            ([subject("ServiceAccount", namespace="one", name="default")], account, True),
            ([subject("ServiceAccount", namespace="one", name="*")], account, True),
            ([subject("ServiceAccount", namespace="on", name="*")], account, False),
            ([subject("ServiceAccount", namespace="one", name="other")], account, False),
        ):
            rule = {"subjects": subjects, "resourceRules": [ALL]}
            self.assertEqual(self.matches(rule, user, b"GET", b"/api/v1/nodes"), expected, subjects)

    def test_resources(self) -> None:
        """Resource rules match by verb, group, resource with subresource, and namespace."""
        everybody = [subject("Group", name="*")]
        pods = b"/api/v1/namespaces/one/pods"
        for rule, method, uri, expected in (
            ({"verbs": ["list"]}, b"GET", pods, True),
            ({"verbs": ["get"]}, b"GET", pods, False),
            ({"apiGroups": [""]}, b"GET", pods, True),
            ({"apiGroups": ["apps"]}, b"GET", pods, False),
            ({"resources": ["pods"]}, b"PUT", pods + b"/a/status", False),
            ({"resources": ["pods/status"]}, b"PUT", pods + b"/a/status", True),
            ({"namespaces": ["two"]}, b"GET", pods, False),
            ({"clusterScope": False}, b"GET", b"/api/v1/pods", False),
            ({"clusterScope": True, "namespaces": []}, b"GET", pods, False),
        ):
            flow_schema = {"subjects": everybody, "resourceRules": [{**ALL, **rule}]}
            self.assertEqual(self.matches(flow_schema, UserInfo("jane"), method, uri), expected, rule)

    def test_paths(self) -> None:
        """Non-resource rules match a path and everything below it."""
        everybody = [subject("Group", name="*")]
        for paths, uri, expected in (
            (["*"], b"/anything", True),
            (["/healthz"], b"/healthz", True),
            (["/healthz"], b"/healthz/etcd", True),
            (["/healthz/*"], b"/healthz/etcd", True),
            (["/healthz"], b"/healthzz", False),
            (["/readyz"], b"/healthz", False),
        ):
            flow_schema = {"subjects": everybody, "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": paths}]}
            self.assertEqual(self.matches(flow_schema, UserInfo("jane"), b"GET", uri), expected, paths)
            self.assertFalse(self.matches(flow_schema, UserInfo("jane"), b"GET", b"/api/v1/pods"))

    def test_order(self) -> None:
        """Schemas are sorted by precedence, then by name."""
        objects = [schema([], name=name, matchingPrecedence=number) for name, number in (("b", 5), ("a", 5), ("z", 1))]
        self.assertEqual([one.name for one in sort_by_precedence(objects)], ["z", "a", "b"])

    def test_flows(self) -> None:
        """The flow distinguisher is the user, the namespace, or empty."""
        info = request_info_of(b"GET", b"/api/v1/namespaces/one/pods")
        for method, expected in ({"type": "ByUser"}, "jane"), ({"type": "ByNamespace"}, "one"), (None, ""):
            flow_schema = FlowSchema.from_object(schema([], distinguisherMethod=method))
            self.assertEqual(flow_schema.flow(UserInfo("jane"), info), expected)
