"""Tests for L{kubetwist.cel.authentication}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.cel.authentication import (
    CauseError,
    ExpressionError,
    claims_value,
    compile_claims_expression,
    compile_user_expression,
    string_list,
    string_value,
    user_value,
)

_CLAIMS = {
    "sub": "alice",
    "email": "alice@example.com",
    "email_verified": True,
    "exp": 1700000000,
    "groups": ["a", "b"],
    "example.com/roles": {"my-app": ["admin"], "deep": [{"a.b": 1}]},
    "nothing": None,
}


class ClaimsTests(SynchronousTestCase):
    """Tests for expressions on claims."""

    def value(self, expression: str) -> Any:
        """Return the value of an expression for the claims of Alice."""
        return compile_claims_expression(expression, "x").evaluate(claims_value(_CLAIMS))

    def test_values(self) -> None:
        """Claims have their JSON values, with all numbers as doubles."""
        self.assertEqual(self.value("claims.sub"), "alice")
        self.assertEqual(self.value("claims.groups.map(g, 'oidc:' + g)"), ["oidc:a", "oidc:b"])
        self.assertIs(self.value("type(claims.exp) == double && claims.exp > 1600000000"), True)
        self.assertIs(self.value("has(claims.nothing) && claims.nothing == null && !has(claims.missing)"), True)
        self.assertIs(self.value("claims.?missing.orValue('x') == 'x' && 'sub' in claims && claims.size() == 7"), True)
        self.assertEqual(self.value("claims.exists(name, name == 'email')"), True)

    def test_escaped(self) -> None:
        """Claims whose names are not identifiers are found by escaped names at every level."""
        self.assertEqual(self.value("claims.example__dot__com__slash__roles.my__dash__app"), ["admin"])
        self.assertEqual(self.value("claims['example.com/roles'].deep[0].a__dot__b"), 1.0)
        self.assertIs(self.value("has(claims.example__dot__com__slash__roles)"), True)

    def test_failures(self) -> None:
        """Selecting a missing claim is an error that contains the expression."""
        with self.assertRaises(ExpressionError) as raised:
            self.value("claims.missing")
        self.assertEqual(str(raised.exception), "expression 'claims.missing' resulted in error: no such key: missing")

    def test_email(self) -> None:
        """A compiled expression reports whether it selects C{claims.email} and C{claims.email_verified}."""
        for expression, uses in {
            "claims.sub": (False, False),
            "claims.email": (True, False),
            "claims.?email.orValue('')": (True, False),
            "[claims].map(c, c.email)": (False, False),
            "claims.email_verified ? claims.email : 'x'": (True, True),
            "['x'].exists(x, has(claims.email_verified))": (False, True),
            "claims['email']": (False, False),
        }.items():
            compiled = compile_claims_expression(expression, "x")
            self.assertEqual((compiled.uses_email, compiled.uses_email_verified), uses, expression)

    def test_problems(self) -> None:
        """Errors of invalid expressions have the path of the field."""
        for expression, boolean, problem in (
            ("claims.sub", True, "must evaluate to bool"),
            ("'x'", True, "must evaluate to bool"),
            (
                "user.username",
                False,
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'user' (in container '')\n"
                " | user.username\n | ^",
            ),
        ):
            with self.assertRaises(CauseError) as raised:
                compile_claims_expression(expression, "jwt[0].x", boolean)
            cause = raised.exception.cause
            shown = expression.replace('"', '\\"')
            self.assertEqual(str(cause), f'jwt[0].x: Invalid value: "{shown}": {problem}')
        self.assertIs(compile_claims_expression("claims.sub == 'alice'", "x", boolean=True).evaluate(_CLAIMS), True)

    def test_results(self) -> None:
        """User names are strings; groups are a string or a list of strings, without empty ones."""
        self.assertEqual((string_value("a"), string_value(["a"]), string_value(None)), ("a", None, None))
        for value, expected in (("a", ["a"]), ("", []), (["a", "", "b"], ["a", "b"]), ([], []), (None, [])):
            self.assertEqual(string_list(value), expected)
        for bad in (1, ["a", 1], {"a": "b"}, True):
            with self.assertRaises(ValueError) as raised:
                string_list(bad)
            self.assertEqual(str(raised.exception), "expression must return a string or a list of strings")


class UserTests(SynchronousTestCase):
    """Tests for expressions on users."""

    def test_values(self) -> None:
        """User validation rules get the user of the claims."""
        user = user_value(UserInfo("alice", "1", ("a",), {"example.com/x": ("y",)}))
        for expression in (
            "user.username == 'alice' && user.uid == '1' && user.groups.all(g, !g.startsWith('system:'))",
            "user.extra['example.com/x'] == ['y']",
            "!('z' in user.groups)",
        ):
            self.assertIs(compile_user_expression(expression, "x").evaluate(user), True)

    def test_problems(self) -> None:
        """A user validation rule must be of type bool."""
        for expression, problem in {
            "user.username": "must evaluate to bool",
            "user.name == ''": "compilation failed: ERROR: <input>:1:5: undefined field 'name'\n"
            " | user.name == ''\n | ....^",
        }.items():
            with self.assertRaises(CauseError) as raised:
                compile_user_expression(expression, "x")
            self.assertEqual(str(raised.exception), f'x: Invalid value: "{expression}": {problem}')
