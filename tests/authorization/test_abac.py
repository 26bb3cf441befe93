"""Tests for L{kubetwist.authorization.abac}."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import execute
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.resource import UserInfo
from kubetwist.authorization.abac import (
    ABAC,
    InvalidPolicy,
    make,
    read_policies,
)
from kubetwist.interfaces import IAuthorizer, IRuleExplainer, IRuleResolver
from kubetwist.server.watchedfiles import POLL_INTERVAL, FileReloader

ALICE = UserInfo("alice", groups=("developers", "system:authenticated"))
EVE = UserInfo("system:anonymous", groups=("system:unauthenticated",))


def line(**spec: Any) -> str:
    """Return a line of version v1beta1."""
    return json.dumps({"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec})


def abac(*lines: str) -> ABAC:
    """Return the authorizer of a file."""
    return ABAC(read_policies("/policies", "\n".join(lines).encode()))


def allows(authorizer: ABAC, user: UserInfo, verb: str, target: str) -> bool:
    """Return whether a user may access a resource C{namespace/group/resource}, or a path that begins with C{/}."""
    if target.startswith("/"):
        attributes = AuthorizerAttributes(user, verb, path=target, is_resource_request=False)
    else:
        namespace, group, resource = target.split("/")
        attributes = AuthorizerAttributes(user, verb, group=group, resource=resource, namespace=namespace)
    verdict = authorizer.authorize(attributes)
    assert verdict.decision is not Decision.DENY
    if verdict.decision is Decision.NO_OPINION:
        assert verdict.reason == "No policy matched."
    return verdict.decision is Decision.ALLOW


class MatchTests(SynchronousTestCase):
    """Tests of the requests that a line allows."""

    def test_interfaces(self) -> None:
        """The authorizer decides, lists its rules and explains its decisions."""
        for interface in (IAuthorizer, IRuleResolver, IRuleExplainer):
            verifyObject(interface, abac())

    def test_resources(self) -> None:
        """A line allows a resource of a group in a namespace; C{*} matches everything, an empty field nothing."""
        exact = abac(line(user="alice", namespace="ns", resource="pods"))
        self.assertTrue(allows(exact, ALICE, "delete", "ns//pods"))
        for other in ("other//pods", "ns//secrets", "ns/apps/pods"):
            self.assertFalse(allows(exact, ALICE, "get", other), other)
        stars = abac(line(user="alice", namespace="*", resource="*", apiGroup="*"))
        self.assertTrue(allows(stars, ALICE, "delete", "any/apps/deployments"))
        self.assertFalse(allows(stars, ALICE, "get", "/metrics"))
        cluster = abac(line(user="alice", resource="nodes"))
        self.assertFalse(allows(cluster, ALICE, "get", "ns//nodes"))
        attributes = AuthorizerAttributes(ALICE, "get", resource="nodes")
        self.assertIs(cluster.authorize(attributes).decision, Decision.ALLOW)

    def test_paths(self) -> None:
        """A path matches exactly, as a prefix with a trailing C{*}, or with C{*} everywhere."""
        for pattern, path, expected in (
            ("/metrics", "/metrics", True),
            ("/metrics", "/metrics/slis", False),
            ("/logs/*", "/logs/a/b", True),
            ("/logs/*", "/logs", False),
            ("*", "/anything", True),
            ("", "/anything", False),
        ):
            self.assertEqual(allows(abac(line(user="alice", nonResourcePath=pattern)), ALICE, "get", path), expected)
        self.assertFalse(allows(abac(line(user="alice", nonResourcePath="*")), ALICE, "get", "ns//pods"))

    def test_readonly(self) -> None:
        """A readonly line allows only to read."""
        authorizer = abac(line(user="alice", namespace="*", resource="*", apiGroup="*", readonly=True))
        for verb, expected in (("get", True), ("list", True), ("watch", True), ("create", False), ("proxy", False)):
            self.assertEqual(allows(authorizer, ALICE, verb, "ns//pods"), expected)

    def test_subjects(self) -> None:
        """A line has a user, a group, or both as subject; C{*} stands for all authenticated users."""
        everything = {"namespace": "*", "resource": "*", "apiGroup": "*"}
        for who, alice, eve in (
            ({"user": "alice"}, True, False),
            ({"user": "bob"}, False, False),
            ({"group": "developers"}, True, False),
            ({"user": "alice", "group": "developers"}, True, False),
            ({"user": "alice", "group": "admins"}, False, False),
            ({"user": "bob", "group": "developers"}, False, False),
            ({"user": "*"}, True, False),
            ({"group": "*"}, True, False),
            ({"group": "system:unauthenticated"}, False, True),
            ({}, False, False),
        ):
            authorizer = abac(line(**who, **everything))
            self.assertEqual(allows(authorizer, ALICE, "get", "ns//pods"), alice, who)
            self.assertEqual(allows(authorizer, EVE, "get", "ns//pods"), eve, who)

    def test_v0(self) -> None:
        """In lines without a version, absent fields match everything."""
        for policy, pods, secrets, path in (
            ({}, True, True, True),
            ({"user": "alice"}, True, True, True),
            ({"user": "*", "namespace": "ns"}, True, True, False),
            ({"group": "developers", "resource": "pods"}, True, False, False),
            ({"user": "bob"}, False, False, False),
        ):
            authorizer = abac(json.dumps(policy))
            self.assertEqual(authorizer.policies.unversioned, 1)
            for target, expected in (("ns/apps/pods", pods), ("ns//secrets", secrets), ("/metrics", path)):
                self.assertEqual(allows(authorizer, ALICE, "delete", target), expected, (policy, target))
            self.assertFalse(allows(authorizer, EVE, "get", "ns//pods"))
        named = {"apiVersion": "abac.authorization.kubernetes.io/v0", "kind": "Policy", "user": "alice"}
        authorizer = abac(json.dumps(named))
        self.assertTrue(allows(authorizer, ALICE, "get", "ns//pods"))
        self.assertEqual(authorizer.policies.unversioned, 0)

    def test_explained(self) -> None:
        """The explanation has the line that allowed the request."""
        authorizer = abac(
            "# nobody",
            line(user="bob", namespace="ns", resource="pods"),
            "",
            line(group="developers", namespace="*", resource="pods"),
        )
        attributes = AuthorizerAttributes(ALICE, "get", resource="pods", namespace="ns")
        self.assertEqual(authorizer.explain(attributes), {"policy": {"line": 4, "user": "", "group": "developers"}})
        self.assertIsNone(authorizer.explain(AuthorizerAttributes(EVE, "get", resource="pods", namespace="ns")))

    def test_rules(self) -> None:
        """The rules of a user in a namespace are listed."""
        authorizer = abac(
            line(user="alice", namespace="ns", resource="pods", readonly=True),
            line(user="alice", namespace="other", resource="secrets"),
            line(group="developers", namespace="*", resource="*", apiGroup="apps", nonResourcePath="/logs/*"),
            line(user="bob", namespace="*", resource="*"),
        )
        self.assertEqual(
            authorizer.rules_for(ALICE, "ns"),
            {
                "resourceRules": [
                    {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]},
                    {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]},
                ],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/logs/*"]}],
                "incomplete": False,
            },
        )


class FileTests(SynchronousTestCase):
    """Tests of the policy file."""

    def test_bad_lines(self) -> None:
        """The error for an invalid line has its number and reason."""
        for text, message in (
            ("{", "unexpected end"),
            ("[]", "json: cannot unmarshal array into Go value"),
            ('{"user": 5}', "json: cannot unmarshal number into Go struct field Policy.user of type string"),
            (
                line(readonly="yes"),
                "json: cannot unmarshal string into Go struct field PolicySpec.spec.readonly of type bool",
            ),
            ('{"apiVersion": "x/v1", "kind": "Policy"}', 'no kind "Policy" is registered for version "x/v1"'),
            (
                '{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": []}',
                "json: cannot unmarshal array into Go struct field Policy.spec",
            ),
        ):
            content = f"# a comment\n\n{text}\n".encode()
            error = self.assertRaises(InvalidPolicy, read_policies, "/policies", content)
            self.assertIn(f"error reading policy file /policies, line 3: {text}: ", str(error))
            self.assertIn(message, str(error))

    def test_long_line(self) -> None:
        """The length of lines is limited."""
        error = self.assertRaises(InvalidPolicy, read_policies, "/p", b"{}\n" + b" " * 70_000)
        self.assertEqual(str(error), "error reading policy file /p: line 2 is longer than 65536 bytes")

    @given(st.binary(max_size=200))
    def test_anything(self, content: bytes) -> None:
        """A file of any content is read or rejected."""
        with contextlib.suppress(InvalidPolicy):
            read_policies("/p", content)

    def test_reload(self) -> None:
        """The file is read at the start, and again when it changes; an invalid file is ignored."""
        path = Path(self.mktemp())
        clock = Clock()

        class Config:
            files = FileReloader(clock, in_thread=execute)

        options = {"authorization-policy-file": str(path)}
        error = self.assertRaises(ValueError, make, options, Config)
        self.assertEqual(str(error), f"error reading policy file {path}: No such file or directory")
        path.write_text(line(user="alice", namespace="*", resource="pods"))
        authorizer = make(options, Config)
        Config.files.start()
        self.addCleanup(Config.files.stop)
        self.assertTrue(allows(authorizer, ALICE, "get", "ns//pods"))
        path.write_text(line(user="alice", namespace="*", resource="secrets") + "\n")
        clock.advance(POLL_INTERVAL)
        self.assertFalse(allows(authorizer, ALICE, "get", "ns//pods"))
        self.assertTrue(allows(authorizer, ALICE, "get", "ns//secrets"))
        path.write_text("nonsense, and longer than before " * 10)
        clock.advance(POLL_INTERVAL)
        self.assertTrue(allows(authorizer, ALICE, "get", "ns//secrets"))

    def test_no_file(self) -> None:
        """The mode ABAC requires a file."""
        error = self.assertRaises(ValueError, make, {"authorization-policy-file": ""}, None)
        self.assertEqual(str(error), "authorization-mode ABAC's authorization policy file not passed")
