"""Tests for L{kubetwist.authorization._configuration} and L{kubetwist.authorization.reload}."""

from __future__ import annotations

import copy
import json
from contextlib import suppress as suppressed

from hypothesis import given
from hypothesis import strategies as st

from kubetwist.authorization._configuration import load_configuration
from tests.authorization.configurationcase import KNOWN, KUBECONFIG, ConfigurationCase


class LoadTests(ConfigurationCase):
    """Tests for L{load_configuration}."""

    def test_webhook(self) -> None:
        """
        A webhook has separate TTLs, timeout, version and failure policy; absent fields have the defaults of the
        reference.
        """
        one, rbac = load_configuration(
            self.document(
                self.webhook(authorizedTTL="1m", cacheUnauthorizedRequests=False, failurePolicy="NoOpinion"),
                {"type": "RBAC", "name": "rbac"},
            ),
            KNOWN,
        ).authorizers
        assert one.rules is not None and one.settings is not None
        self.assertEqual((one.kind, one.name, one.settings.url), ("Webhook", "hook", "https://127.0.0.1:1/authorize"))
        self.assertEqual((one.rules.timeout, one.rules.authorized_ttl, one.rules.unauthorized_ttl), (3.0, 60.0, 0.0))
        self.assertFalse(one.rules.deny_on_error)
        self.assertEqual((rbac.kind, rbac.rules), ("RBAC", None))
        (one,) = load_configuration(self.document(self.webhook()), KNOWN).authorizers
        assert one.rules is not None
        self.assertEqual((one.rules.authorized_ttl, one.rules.unauthorized_ttl), (300.0, 30.0))
        self.assertTrue(one.rules.deny_on_error)

    def test_conditions(self) -> None:
        """Match conditions are compiled when the file is read."""
        conditions = [{"expression": "request.user == 'jane'"}]
        (one,) = load_configuration(self.document(self.webhook(matchConditions=conditions)), KNOWN).authorizers
        assert one.rules is not None and one.rules.conditions is not None
        self.assertTrue(one.rules.conditions.matches({"user": "jane"}))
        self.assertFalse(one.rules.conditions.matches({"user": "joe"}))

    def test_files(self) -> None:
        """The configuration lists the kubeconfig and the files that it names."""
        config = copy.deepcopy(KUBECONFIG)
        config["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"  # type: ignore[index]
        self.kubeconfig.write_text(json.dumps(config))
        (self.folder / "ca.crt").write_text("x")
        result = load_configuration(self.document(self.webhook()), KNOWN)
        self.assertEqual(result.files, (self.kubeconfig, self.folder / "ca.crt"))

    def test_authorizers(self) -> None:
        """Errors of the list have the texts of the reference."""
        for authorizers, message in (
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
            self.assertEqual(self.rejection(*authorizers), message)
        self.assertIn("authorizer name is invalid: a lowercase RFC 1123", self.rejection(self.webhook("No Name")))

    def test_webhooks(self) -> None:
        """Errors of a webhook have the texts of the reference and the field path."""
        missing = self.folder / "none"
        for changes, message in (
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
            self.assertEqual(self.rejection(self.webhook(**changes)), message)

    def test_bad_conditions(self) -> None:
        """Match conditions that do not compile are rejected with their path."""
        message = self.rejection(self.webhook(matchConditions=[{"expression": "true"}, {"expression": "request.user"}]))
        self.assertIn("authorizers[0].matchConditions[1].expression: Invalid value", message)
        message = self.rejection(self.webhook(matchConditions=[{"expression": "request.nothing == 'x'"}]))
        self.assertIn("compilation failed", message)

    def test_several(self) -> None:
        """All errors are reported together."""
        self.assertEqual(
            self.rejection({"type": "RBAC"}, {"name": "x"}),
            "[authorizers[0].name: Required value, authorizers[1].type: Required value]",
        )

    def test_form(self) -> None:
        """A file that is not an AuthorizationConfiguration and files with unknown fields are rejected."""
        start = "failed to load AuthorizationConfiguration from file: "
        for content, message in (
            (b"a: [", "yaml"),
            (b"[]", "json: cannot unmarshal array"),
            (b'{"kind": "Pod", "apiVersion": "v1"}', 'no kind "Pod" is registered for version "v1"'),
            (self.document({"type": "RBAC", "name": "rbac", "nmae": "x"}), 'unknown field "authorizers[0].nmae"'),
            (self.document(self.webhook(timeout="soon")), 'time: invalid duration "soon"'),
            (self.document(self.webhook(cacheAuthorizedRequests="yes")), "cannot unmarshal string"),
        ):
            error = self.assertRaises(ValueError, load_configuration, content, KNOWN)
            self.assertTrue(str(error).startswith(start), str(error))
            self.assertIn(message, str(error))
        error = self.assertRaises(ValueError, load_configuration, b"", KNOWN)
        self.assertEqual(str(error), "authorizers: Required value: at least one authorization mode must be defined")

    @given(content=st.binary(max_size=80))
    def test_anything(self, content: bytes) -> None:
        """Any content is a configuration or a reported error."""
        with suppressed(ValueError):
            load_configuration(content, KNOWN)
