"""Tests for L{kubetwist.testing.expectations}."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import ANY

from hypothesis import given
from hypothesis.strategies import booleans, dictionaries, integers, lists, recursive, sampled_from, text, tuples

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.expectations import Expectation, ExpectedRequest, body_differences, decode_body
from kubetwist.testing.requests import RecordedRequest
from tests.testing.powercase import MAPS, PowerTestCase

VALUES = recursive(text() | integers() | booleans(), lambda inner: lists(inner) | dictionaries(text(), inner))


def request(verb: str, resource: str, name: str = "", body: Any = None, **more: Any) -> RecordedRequest:
    """Return a request of the user alice in the namespace default."""
    plural, _, subresource = resource.partition("/")
    plural, _, group = plural.partition(".")
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"user": "alice", "code": 200, "content_type": "application/json", "namespace": "default", **more}
    return RecordedRequest(
        "GET", "/x", {}, verb, group, "v1", plural, subresource, name=name, user_agent="", body=content, **fields
    )


def compare(expected: Sequence[Any], requests: Sequence[RecordedRequest], **how: bool) -> str:
    """Return the differences."""
    return Expectation.of(expected, how.get("ordered", False), how.get("exact", False)).compare(requests)


class RequestTests(SynchronousTestCase):
    """L{ExpectedRequest}."""

    def test_forms(self) -> None:
        """Text, dictionaries and objects describe the same request."""
        expected = ExpectedRequest("patch", "pods/status", "web-0")
        self.assertEqual(ExpectedRequest.of("patch pods/status web-0"), expected)
        self.assertEqual(ExpectedRequest.of({"verb": "patch", "resource": "pods/status", "name": "web-0"}), expected)
        self.assertIs(ExpectedRequest.of(expected), expected)
        self.assertEqual(ExpectedRequest.of("list pods"), ExpectedRequest("list", "pods"))
        for wrong in ("list", "create pods a b", {"verb": "list"}, {"verb": "list", "resource": "pods", "colour": 1}):
            self.assertRaises(ValueError, ExpectedRequest.of, wrong)
        self.assertRaises(ValueError, Expectation.of, [ExpectedRequest("a", "b", times=-1)], False, False)

    def test_resource(self) -> None:
        """Subresources and groups are compared; without a group, any group is expected."""
        scale = request("patch", "deployments.apps/scale", "web")
        for resource, expected in (
            ("deployments/scale", True),
            ("deployments.apps/scale", True),
            ("deployments.extensions/scale", False),
            ("deployments", False),
            ("deployments/status", False),
        ):
            self.assertEqual(ExpectedRequest("patch", resource).is_about(scale), expected)

    def test_differences(self) -> None:
        """Each field that differs has a line."""
        sent = request(
            "create", "pods", body={"metadata": {"name": "a", "labels": {"x.y": "1"}}, "spec": {"n": [1, 2]}}
        )
        self.assertEqual(ExpectedRequest("create", "pods", "a", user="alice", code=200).differences(sent), [])
        expected = {"metadata": {"labels": {"x.y": "2", "z": ANY}}, "spec": {"n": [1], "m": 3}}
        self.assertEqual(
            ExpectedRequest("create", "pods", "b", "kube-system", "bob", expected, 409).differences(sent),
            [
                "name: expected 'b', was 'a'",
                "namespace: expected 'kube-system', was 'default'",
                "user: expected 'bob', was 'alice'",
                "code: expected 409, was 200",
                "metadata.labels['x.y']: expected '2', was '1'",
                "metadata.labels.z: expected <ANY>, is missing",
                "spec.n: expected 1 items, was 2 items",
                "spec.m: expected 3, is missing",
            ],
        )

    def test_bodies(self) -> None:
        """JSON and YAML are decoded; other bodies are a difference."""
        yaml = request("patch", "pods", "a", b"{spec: {n: 1}}", content_type="application/apply-patch+yaml")
        self.assertEqual(ExpectedRequest("patch", "pods", body={"spec": {"n": 1}}).differences(yaml), [])
        self.assertIsNone(decode_body(request("delete", "pods", "a")))
        for body, message in ((b"k8s\0abc", "protobuf"), (b"{", "neither")):
            found = ExpectedRequest("create", "pods", body={}).differences(request("create", "pods", body=body))
            self.assertEqual(len(found), 1)
            self.assertIn(message, found[0])

    @given(VALUES, VALUES)
    def test_subset(self, value: Any, other: Any) -> None:
        """A value has no differences to itself, nor to itself with more fields; True and 1 differ."""
        self.assertEqual(body_differences(value, value), [])
        self.assertEqual(body_differences({"a": value}, {"a": value, "b": other}), [])
        self.assertEqual(body_differences(value, other) == [], subset(value, other))
        self.assertEqual(body_differences(1, True), ["body: expected 1, was True"])


def subset(value: Any, other: Any) -> bool:
    """Return whether all fields of a value are in another one."""
    if isinstance(value, dict) and isinstance(other, dict):
        return all(name in other and subset(value[name], other[name]) for name in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(subset, value, other))
    return type(value) is type(other) and bool(value == other)


class ComparisonTests(SynchronousTestCase):
    """L{Expectation}."""

    def test_any_order(self) -> None:
        """All expected requests have to be among the requests, as often as expected."""
        seen = [request("list", "pods"), request("create", "pods", "a"), request("create", "pods", "b")]
        self.assertEqual(compare(["create pods b", "create pods a"], seen), "")
        self.assertEqual(compare([ExpectedRequest("create", "pods", times=2)], seen), "")
        self.assertNotEqual(compare([ExpectedRequest("create", "pods", times=3)], seen), "")
        # The first one must not take the only request that suits the second one.
        self.assertEqual(compare(["create pods", "create pods a"], seen[:0:-1]), "")
        self.assertEqual(compare(["create pods", "create pods a"], seen[1:]), "")

    def test_order(self) -> None:
        """Ordered requests may have further ones between them."""
        seen = [request("create", "pods", name) for name in "abc"]
        self.assertEqual(compare(["create pods a", "create pods c"], seen, ordered=True), "")
        self.assertNotEqual(compare(["create pods c", "create pods a"], seen, ordered=True), "")
        self.assertEqual(compare(["create pods c", "create pods a"], seen), "")

    def test_exact(self) -> None:
        """Other requests are unexpected."""
        seen = [request("create", "pods", name) for name in "abc"]
        for ordered in (False, True):
            names = [f"create pods {name}" for name in "abc"]
            self.assertEqual(compare(names, seen, exact=True, ordered=ordered), "")
            self.assertIn("1 unexpected", compare(names[1:], seen, exact=True, ordered=ordered))
        self.assertEqual(compare([], seen), "")
        self.assertEqual(compare([], [], exact=True), "")

    def test_text(self) -> None:
        """The difference shows requests in the order of their arrival, then the missing ones."""
        seen = [
            request("get", "configmaps", "x"),
            request("create", "pods", body={"metadata": {"name": "a"}, "spec": {"n": 2}}, code=201),
            request("delete", "services", "s"),
        ]
        expected = [
            "get configmaps x",
            {"verb": "create", "resource": "pods", "name": "a", "body": {"spec": {"n": 3}}},
            ExpectedRequest("update", "deployments.apps/status", "web", "default", "bob", code=200),
        ]
        self.assertEqual(
            compare(expected, seen, exact=True).splitlines(),
            [
                "2 of 3 expected requests (in any order) are missing, and 2 unexpected:",
                "  ok get configmaps default/x by alice -> 200",
                "   ~ create pods default/a by alice -> 201",
                "       spec.n: expected 3, was 2",
                "   + delete services default/s by alice -> 200",
                "   - update deployments.apps/status default/web by bob -> 200",
                "  (ok expected, - missing, ~ differs, + unexpected)",
            ],
        )
        order = compare(["create pods a", "get configmaps x"], seen, ordered=True)
        self.assertIn("it is in another position", order)

    def test_bounded(self) -> None:
        """Many requests are cut."""
        text_ = compare(["create pods x"], [request("create", "pods", str(number)) for number in range(5000)])
        self.assertLess(len(text_.splitlines()), 100)
        self.assertIn("earlier requests", text_)

    @given(lists(tuples(sampled_from(["create", "delete"]), sampled_from("ab")), max_size=8), booleans(), booleans())
    def test_same(self, entries: list[tuple[str, str]], ordered: bool, exact: bool) -> None:
        """Requests meet the expectation of themselves; in any order also reversed; without one they do not."""
        seen = [request(verb, "pods", name) for verb, name in entries]
        expected = [f"{verb} pods {name}" for verb, name in entries]
        self.assertEqual(compare(expected, seen, ordered=ordered, exact=exact), "")
        self.assertEqual(compare(expected[::-1], seen, exact=exact), "")
        if seen:
            self.assertNotEqual(compare(expected, seen[1:], ordered=ordered, exact=exact), "")


class ServerTests(PowerTestCase):
    """C{expect_requests}, C{by} and C{since} of a server."""

    async def test_expected(self) -> None:
        """The requests in the context are compared at its end; the error of the context has precedence."""
        await self.begin("--controllers=")
        with self.server.expect_requests("create configmaps a", verbs="write", exact=True) as log:
            await self.make("a")
            await self.ask("GET", MAPS)
        self.assertEqual(len(log.requests), 2)
        differs = self.assertRaisesRegex(
            AssertionError, r"~ create configmaps default/b by kubetwist-test-admin -> 201"
        )
        with differs, self.server.expect_requests("create configmaps c"):
            await self.make("b")
        with self.assertRaises(ZeroDivisionError), self.server.expect_requests("create configmaps c"):
            1 / 0  # noqa: B018

    async def test_users(self) -> None:
        """Requests are selected by user, service account, impersonator and position, also while they are open."""
        await self.begin("--controllers=")
        log = self.server.record_requests()
        await self.make("a")
        mark = log.mark()
        connection = self.server.connection
        as_alice = {"Impersonate-User": "system:serviceaccount:default:builder"}
        client = connection.treq()
        response = await client.get(MAPS, headers=as_alice)
        await response.content()
        self.assertEqual(response.code, 403)
        watch = await self.watch(f"{MAPS}?watch=1")
        account = log.by(service_account="default/builder")
        self.assertEqual([one.verb for one in account.requests], ["list"])
        self.assertEqual(account.requests[0].impersonator, "kubetwist-test-admin")
        self.assertEqual(log.by(impersonator="kubetwist-test-admin").requests, account.requests)
        admin = log.by("kubetwist-test-admin")
        self.assertEqual([(one.verb, one.code) for one in admin.requests], [("create", 201), ("watch", 200)])
        self.assertEqual([one.verb for one in admin.since(mark).requests], ["watch"])
        self.assertEqual([one.verb for one in log.since(account.requests[0]).requests], ["watch"])
        account.assert_requested(code=403, times=1)
        with self.assertRaises(ValueError):
            log.by("a", service_account="b/c")
        with self.assertRaises(ValueError):
            log.by(service_account="c")
        watch.close()
