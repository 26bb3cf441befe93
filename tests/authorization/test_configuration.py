"""Tests for L{kubetwist.authorization.configuration} and L{kubetwist.authorization.reload}."""

from __future__ import annotations

import copy
import json
from contextlib import suppress as suppressed
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import maybeDeferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.resource import UserInfo
from kubetwist.authorization import always
from kubetwist.authorization.configuration import load_configuration
from kubetwist.authorization.reload import ReloadedAuthorizer
from kubetwist.client.factory import Outgoing
from kubetwist.interfaces import IAuthorizer, IRuleResolver
from kubetwist.server.watchedfiles import INTERVAL, WatchedFiles

KNOWN = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1/authorize"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c"}}],
    "current-context": "x",
}


class ConfigurationCase(SynchronousTestCase):
    """A folder with a kubeconfig."""

    def setUp(self) -> None:
        """Make it."""
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(KUBECONFIG))

    def webhook(self, name: str = "hook", **changes: Any) -> dict[str, Any]:
        """An authorizer of the type Webhook."""
        webhook: dict[str, Any] = {
            "timeout": "3s",
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": "Deny",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(self.kubeconfig)},
        }
        webhook.update(changes)
        return {"type": "Webhook", "name": name, "webhook": webhook}

    def document(self, *authorizers: Any) -> bytes:
        """A file."""
        config = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": list(authorizers),
        }
        return json.dumps(config).encode()

    def refusal(self, *authorizers: Any) -> str:
        """Why a file is refused."""
        return str(self.assertRaises(ValueError, load_configuration, self.document(*authorizers), KNOWN))


class LoadTests(ConfigurationCase):
    """What a file says."""

    def test_webhook(self) -> None:
        """A webhook has its own times, version and policy; what is not said is as in the reference."""
        one, rbac = load_configuration(
            self.document(
                self.webhook(authorizedTTL="1m", cacheUnauthorizedRequests=False, failurePolicy="NoOpinion"),
                {"type": "RBAC", "name": "rbac"},
            ),
            KNOWN,
        ).authorizers
        assert one.rules is not None and one.settings is not None
        self.assertEqual((one.kind, one.name, one.settings.url), ("Webhook", "hook", "https://127.0.0.1:1/authorize"))
        self.assertEqual(
            (one.rules.timeout, one.rules.authorized_seconds, one.rules.unauthorized_seconds), (3.0, 60.0, 0.0)
        )
        self.assertFalse(one.rules.deny_on_error)
        self.assertEqual((rbac.kind, rbac.rules), ("RBAC", None))
        (one,) = load_configuration(self.document(self.webhook()), KNOWN).authorizers
        assert one.rules is not None
        self.assertEqual((one.rules.authorized_seconds, one.rules.unauthorized_seconds), (300.0, 30.0))
        self.assertTrue(one.rules.deny_on_error)

    def test_conditions(self) -> None:
        """Match conditions are compiled once, when the file is read."""
        conditions = [{"expression": "request.user == 'jane'"}]
        (one,) = load_configuration(self.document(self.webhook(matchConditions=conditions)), KNOWN).authorizers
        assert one.rules is not None and one.rules.conditions is not None
        self.assertTrue(one.rules.conditions.matches({"user": "jane"}))
        self.assertFalse(one.rules.conditions.matches({"user": "joe"}))

    def test_files(self) -> None:
        """The kubeconfig and what it names are part of it."""
        config = copy.deepcopy(KUBECONFIG)
        config["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"  # type: ignore[index]
        self.kubeconfig.write_text(json.dumps(config))
        (self.folder / "ca.crt").write_text("x")
        found = load_configuration(self.document(self.webhook()), KNOWN)
        self.assertEqual(found.files, (self.kubeconfig, self.folder / "ca.crt"))

    def test_authorizers(self) -> None:
        """What is wrong with the list is told in the reference's words."""
        for authorizers, why in (
            ([], "authorizers: Required value: at least one authorization mode must be defined"),
            ([{"name": "x"}], "authorizers[0].type: Required value"),
            (
                [{"type": "Odd", "name": "x"}],
                'authorizers[0].type: Unsupported value: "Odd": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny",'
                ' "Node", "RBAC", "Webhook"',
            ),
            (
                [{"type": "RBAC", "name": "rbac"}, {"type": "RBAC", "name": "other"}],
                'authorizers[1].type: Duplicate value: "RBAC"',
            ),
            ([{"type": "RBAC"}], "authorizers[0].name: Required value"),
            ([self.webhook("a"), self.webhook("a")], 'authorizers[1].name: Duplicate value: "a"'),
            ([{"type": "Webhook", "name": "a"}], "authorizers[0].webhook: Required value: required when type=Webhook"),
            (
                [{**self.webhook(), "type": "RBAC", "name": "rbac"}],
                'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook',
            ),
            ([{"type": "RBAC", "name": "roles"}], "expected name rbac for authorizer RBAC instead of roles"),
        ):
            self.assertEqual(self.refusal(*authorizers), why)
        self.assertIn("authorizer name is invalid: a lowercase RFC 1123", self.refusal(self.webhook("No Name")))

    def test_webhooks(self) -> None:
        """What is wrong with a webhook is told in the reference's words, with the path of its authorizer."""
        missing = self.folder / "none"
        for changes, why in (
            ({"timeout": None}, "authorizers[0].timeout: Required value"),
            ({"timeout": "31s"}, 'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s'),
            ({"timeout": "-1s"}, 'authorizers[0].timeout: Invalid value: "-1s": must be > 0s and <= 30s'),
            ({"authorizedTTL": "-1m"}, 'authorizers[0].authorizedTTL: Invalid value: "-1m0s": must be > 0s'),
            ({"unauthorizedTTL": "-5ms"}, 'authorizers[0].unauthorizedTTL: Invalid value: "-5ms": must be > 0s'),
            ({"subjectAccessReviewVersion": ""}, "authorizers[0].subjectAccessReviewVersion: Required value"),
            (
                {"subjectAccessReviewVersion": "v2"},
                'authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1"',
            ),
            (
                {"matchConditionSubjectAccessReviewVersion": "", "matchConditions": [{"expression": "true"}]},
                "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions"
                " are specified",
            ),
            ({"failurePolicy": ""}, "authorizers[0].failurePolicy: Required value"),
            (
                {"failurePolicy": "Allow"},
                'authorizers[0].failurePolicy: Unsupported value: "Allow": supported values: "Deny", "NoOpinion"',
            ),
            ({"connectionInfo": {}}, "authorizers[0].connectionInfo.type: Required value"),
            (
                {"connectionInfo": {"type": "KubeConfigFile"}},
                "authorizers[0].connectionInfo.kubeConfigFile: Required value",
            ),
            (
                {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "relative"}},
                'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "relative": must be an absolute path',
            ),
            (
                {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(missing)}},
                f'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "{missing}": error loading file:'
                f" stat {missing}: no such file or directory",
            ),
            (
                {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(self.folder)}},
                f'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "{self.folder}": must be a regular file',
            ),
        ):
            self.assertEqual(self.refusal(self.webhook(**changes)), why)

    def test_bad_conditions(self) -> None:
        """Conditions that do not compile, or are no conditions, are refused with their place."""
        why = self.refusal(self.webhook(matchConditions=[{"expression": "true"}, {"expression": "request.user"}]))
        self.assertIn("authorizers[0].matchConditions[1].expression: Invalid value", why)
        why = self.refusal(self.webhook(matchConditions=[{"expression": "request.nothing == 'x'"}]))
        self.assertIn("compilation failed", why)

    def test_several(self) -> None:
        """All that is wrong is told at once."""
        self.assertEqual(
            self.refusal({"type": "RBAC"}, {"name": "x"}),
            "[authorizers[0].name: Required value, authorizers[1].type: Required value]",
        )

    def test_form(self) -> None:
        """A file that is no AuthorizationConfiguration is refused; unknown fields are, too."""
        start = "failed to load AuthorizationConfiguration from file: "
        for content, why in (
            (b"a: [", "yaml"),
            (b"[]", "json: cannot unmarshal array"),
            (b'{"kind": "Pod", "apiVersion": "v1"}', 'no kind "Pod" is registered for version "v1"'),
            (self.document({"type": "RBAC", "name": "rbac", "nmae": "x"}), 'unknown field "authorizers[0].nmae"'),
            (self.document(self.webhook(timeout="soon")), 'time: invalid duration "soon"'),
            (self.document(self.webhook(cacheAuthorizedRequests="yes")), "cannot unmarshal string"),
        ):
            error = self.assertRaises(ValueError, load_configuration, content, KNOWN)
            self.assertTrue(str(error).startswith(start), str(error))
            self.assertIn(why, str(error))
        error = self.assertRaises(ValueError, load_configuration, b"", KNOWN)
        self.assertEqual(str(error), "authorizers: Required value: at least one authorization mode must be defined")

    @given(content=st.binary(max_size=80))
    def test_anything(self, content: bytes) -> None:
        """Whatever stands in the file, it is a configuration or an error that can be told."""
        with suppressed(ValueError):
            load_configuration(content, KNOWN)


class ReloadTests(ConfigurationCase):
    """A file that changes."""

    def setUp(self) -> None:
        """A server that has such a file."""
        super().setUp()
        self.clock = Clock()
        self.path = self.folder / "config"
        self.files = WatchedFiles(self.clock, in_thread=lambda call: maybeDeferred(call))
        self.lines: list[str] = []
        self.files._log = self  # type: ignore[assignment]
        self.files.start()
        self.addCleanup(self.files.stop)
        self.made: list[str] = []

    def error(self, text: str, **fields: Any) -> None:
        """A line of the log."""
        self.lines.append(text.format(**fields))

    def info(self, text: str, **fields: Any) -> None:
        """Nothing is wrong."""

    def make(self, kind: str) -> Any:
        """An authorizer that is no webhook."""
        self.made.append(kind)
        return always.make_allow({}, None) if kind == "AlwaysAllow" else always.make_deny({}, None)

    def start(self, *authorizers: Any) -> ReloadedAuthorizer:
        """Read a file at the start."""
        self.path.write_bytes(self.document(*authorizers))
        authorizer = ReloadedAuthorizer(self.clock, Outgoing(self.clock, lambda *_: None), KNOWN, self.make)
        authorizer.read(self.files, str(self.path))
        return authorizer

    def change(self, *authorizers: Any) -> None:
        """Have another file."""
        self.path.write_bytes(self.document(*authorizers))
        self.clock.advance(INTERVAL)

    def names(self, authorizer: ReloadedAuthorizer) -> list[str]:
        """Who is asked."""
        return [one.name for one in authorizer.authorizers]

    def test_interfaces(self) -> None:
        """It is an authorizer."""
        authorizer = self.start({"type": "RBAC", "name": "rbac"})
        verifyObject(IAuthorizer, authorizer)
        verifyObject(IRuleResolver, authorizer)

    def test_change(self) -> None:
        """A new file counts from the next request on; what is no webhook stays the same object."""
        rbac = {"type": "RBAC", "name": "rbac"}
        authorizer = self.start(rbac)
        before = authorizer.authorizers[1]
        question = AuthorizerAttributes(UserInfo("jane"), "get", resource="pods")
        self.assertIs(authorizer.authorize(question).decision, Decision.NO_OPINION)  # type: ignore[union-attr]
        self.change(rbac, {"type": "AlwaysAllow", "name": "alwaysallow"})
        self.assertIs(authorizer.authorizers[1], before)
        self.assertIs(authorizer.authorize(question).decision, Decision.ALLOW)  # type: ignore[union-attr]
        self.change(self.webhook(), rbac)
        self.assertEqual(self.names(authorizer), ["PrivilegedGroup", "Webhook", "AlwaysDeny"])

    def test_bad_change(self) -> None:
        """A bad new file keeps the old one, and the log says why."""
        rbac = {"type": "RBAC", "name": "rbac"}
        authorizer = self.start(rbac)
        before = authorizer.authorizers
        for authorizers, why in (
            ([], "at least one authorization mode must be defined"),
            ([self.webhook()], "missing required types: [RBAC]"),
            (
                [rbac, {"type": "Node", "name": "node"}],
                "authorizer type Node is not allowed if it was not enabled at initial server startup",
            ),
            ([rbac, self.webhook(timeout="1h")], "must be > 0s and <= 30s"),
        ):
            self.lines.clear()
            self.change(*authorizers)
            self.assertEqual(len(self.lines), 1)
            self.assertIn(why, self.lines[0])
            self.assertIs(authorizer.authorizers, before)

    def test_kubeconfig(self) -> None:
        """A new kubeconfig of a webhook counts like a new file."""
        authorizer = self.start(self.webhook())
        before = authorizer._clients[0]
        self.kubeconfig.write_text(json.dumps(KUBECONFIG).replace("127.0.0.1:1/", "127.0.0.1:2/"))
        self.clock.advance(INTERVAL)
        self.assertEqual(authorizer._clients[0].settings.url, "https://127.0.0.1:2/authorize")
        self.assertIsNot(authorizer._clients[0], before)

    def test_no_file(self) -> None:
        """Without the file there is no start."""
        authorizer = ReloadedAuthorizer(self.clock, Outgoing(self.clock, lambda *_: None), KNOWN, self.make)
        error = self.assertRaises(ValueError, authorizer.read, self.files, "/nowhere")
        self.assertEqual(str(error), "open /nowhere: no such file or directory")
