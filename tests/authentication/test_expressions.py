"""Tests of CEL expressions in the authentication configuration: validation and evaluation."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.configurations import ConfigurationError
from kubetwist.api.resource import UserInfo
from kubetwist.authentication.configuration import read_configuration
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.oidc import OIDCAuthenticator
from tests.oidcissuer import NOW, Issuer, Network

CREDENTIAL = "authentication.kubernetes.io/credential-id"


class ExpressionCase(SynchronousTestCase):
    """A test case with an issuer whose users are mapped by expressions."""

    def configuration(self, username: str = "claims.sub", rules: Any = (), users: Any = (), **mappings: Any) -> Any:
        """Return a configuration with these fields."""
        jwt = {
            "issuer": {"url": "https://issuer.example.com", "audiences": ["me"]},
            "claimMappings": {"username": {"expression": username}, **mappings},
            "claimValidationRules": list(rules),
            "userValidationRules": list(users),
        }
        document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]}
        return read_configuration(json.dumps(document).encode(), [])

    def user(self, configuration: Any, **claims: Any) -> UserInfo:
        """Return the user of a token with these claims."""
        issuer = Issuer()
        tokens = OIDCAuthenticator(Network(issuer), Clock(), now=lambda: NOW)
        tokens.configure(configuration.jwt)
        self.addCleanup(tokens.stop)
        token = issuer.token(**claims)
        request: Any = type("Request", (), {"fields": {b"authorization": [b"Bearer " + token.encode()]}})
        user = tokens.authenticate(request)
        assert isinstance(user, UserInfo)
        return user

    def error_text(self, configuration: Any, **claims: Any) -> str:
        """Return the error for a token."""
        return str(self.assertRaises(AuthenticationFailed, self.user, configuration, **claims))


class MappingTests(ExpressionCase):
    """Tests of expressions in claim mappings."""

    def test_all(self) -> None:
        """Every attribute of a user can have an expression; empty values are omitted."""
        configuration = self.configuration(
            "'x:' + claims.sub",
            groups={"expression": "claims.roles.map(r, 'g:' + r) + ['']"},
            uid={"expression": "claims.?id.orValue('none')"},
            extra=[
                {"key": "acme.io/team", "valueExpression": "claims.team"},
                {"key": "acme.io/none", "valueExpression": "claims.?nothing.orValue('')"},
                {"key": "acme.io/all", "valueExpression": "claims.roles"},
            ],
        )
        user = self.user(configuration, roles=["a", "b"], team="t", jti="j")
        extra = {CREDENTIAL: ("JTI=j",), "acme.io/team": ("t",), "acme.io/all": ("a", "b")}
        self.assertEqual(user, UserInfo("x:alice", "none", ("g:a", "g:b", "system:authenticated"), extra))

    def test_deep(self) -> None:
        """Expressions can read nested claims and escaped names."""
        configuration = self.configuration("claims['acme.io/who'].names[0] + claims.a__dot__b.c")
        self.assertEqual(self.user(configuration, **{"acme.io/who": {"names": ["n"]}, "a.b": {"c": "!"}}).name, "n!")

    def test_wrong(self) -> None:
        """An expression without a value or with a value of another type fails the authentication."""
        for expression, text in (
            ("claims.nothing", "expression 'claims.nothing' resulted in error: no such key: nothing"),
            ("claims.exp", "username claim expression must return a string"),
        ):
            text = f"oidc: error evaluating username claim expression: {text}"
            self.assertEqual(self.error_text(self.configuration(expression)), text)
        text = "oidc: empty username via CEL expression is not allowed"
        self.assertEqual(self.error_text(self.configuration("''")), text)
        text = "oidc: error evaluating group claim expression: expression must return a string or a list of strings"
        self.assertEqual(self.error_text(self.configuration(groups={"expression": "[claims.exp]"})), text)
        text = "oidc: error evaluating uid claim expression: uid claim expression must return a string"
        self.assertEqual(self.error_text(self.configuration(uid={"expression": "5"})), text)
        extra = [{"key": "acme.io/a", "valueExpression": "true"}]
        text = (
            "oidc: error evaluating extra claim expression: true: expression must return a string or a list of strings"
        )
        self.assertEqual(self.error_text(self.configuration(extra=extra)), text)


class RuleTests(ExpressionCase):
    """Tests of validation rules for claims and users."""

    def test_claims(self) -> None:
        """A token that violates a claim rule is rejected; the error contains the message of the rule."""
        rule = {"expression": "claims.exp - claims.iat <= 3600.0", "message": "too long"}
        configuration = self.configuration(rules=[rule])
        self.assertEqual(self.user(configuration).name, "alice")
        text = f"validation expression '{rule['expression']}' failed: too long"
        text = f"oidc: error evaluating claim validation expression: {text}"
        self.assertEqual(self.error_text(configuration, iat=NOW - 7200), text)
        self.assertIn("no such key: iat", self.error_text(configuration, iat=None))

    def test_users(self) -> None:
        """A token whose user violates a user rule is rejected."""
        rule = {"expression": "!user.username.startsWith('system:') && 'a' in user.groups", "message": "no"}
        configuration = self.configuration(users=[rule], groups={"expression": "claims.roles"})
        self.assertEqual(self.user(configuration, roles=["a"]).name, "alice")
        for claims in ({"roles": ["b"]}, {"roles": ["a"], "sub": "system:x"}):
            text = f"validation expression '{rule['expression']}' failed: no"
            self.assertEqual(
                self.error_text(configuration, **claims), f"oidc: error evaluating user info validation rule: {text}"
            )


class CompileTests(ExpressionCase):
    """Tests of the validation of expressions."""

    def rejection(self, **changes: Any) -> str:
        """Return the error for a configuration."""
        error = str(self.assertRaises(ConfigurationError, self.configuration, **changes))
        return error.removeprefix("invalid authentication configuration: ")

    def test_syntax(self) -> None:
        """A syntax error is rejected."""
        text = self.rejection(username="claims.a[")
        start = 'jwt[0].claimMappings.username.expression: Invalid value: "claims.a[": compilation failed: ERROR: '
        self.assertTrue(text.startswith(start), text)
        self.assertIn("undefined field 'name'", self.rejection(users=[{"expression": "user.name == ''"}]))

    def test_types(self) -> None:
        """A rule must be boolean."""
        for changes, field in (
            ({"rules": [{"expression": "claims.sub"}]}, "claimValidationRules[0].expression"),
            ({"users": [{"expression": "user.username"}]}, "userValidationRules[0].expression"),
        ):
            self.assertTrue(self.rejection(**changes).startswith(f"jwt[0].{field}: Invalid value: "))
            self.assertTrue(self.rejection(**changes).endswith("must evaluate to bool"))

    def test_repeated(self) -> None:
        """Rules must be unique and not empty."""
        for key, field in (("rules", "claimValidationRules"), ("users", "userValidationRules")):
            self.assertEqual(
                self.rejection(**{key: [{"expression": "true"}] * 2}),
                f'jwt[0].{field}[1].expression: Duplicate value: "true"',
            )
        self.assertEqual(self.rejection(users=[{}]), "jwt[0].userValidationRules[0].expression: Required value")
        text = 'requiredValue: Invalid value: "v": may not be specified when expression is set'
        text = f"jwt[0].claimValidationRules[0].{text}"
        self.assertEqual(self.rejection(rules=[{"expression": "true", "requiredValue": "v"}]), text)
        extra = [{"key": "acme.io/a", "valueExpression": "'a'"}] * 2
        self.assertEqual(self.rejection(extra=extra), 'jwt[0].claimMappings.extra[1].key: Duplicate value: "acme.io/a"')

    def test_email(self) -> None:
        """A user name from C{claims.email} requires the use of C{claims.email_verified}."""
        text = "claims.email_verified must be used in claimMappings.username.expression or"
        self.assertIn(text, self.rejection(username="claims.email"))
        self.assertIn(text, self.rejection(username="claims.?email.orValue('')"))
        for changes in (
            {"username": "claims.email_verified ? claims.email : ''"},
            {"username": "claims.email", "rules": [{"expression": "claims.email_verified == true"}]},
            {
                "username": "claims.email",
                "extra": [{"key": "acme.io/v", "valueExpression": "string(claims.email_verified)"}],
            },
        ):
            self.configuration(**changes)

    def test_prefix(self) -> None:
        """A user name from an expression has no prefix."""
        text = 'jwt[0].claimMappings.groups.prefix: Invalid value: "x": may not be specified when expression is set'
        self.assertEqual(self.rejection(groups={"expression": "[]", "prefix": "x"}), text)
