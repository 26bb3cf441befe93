"""Tests for L{kubetwist.authentication._claims}."""

from __future__ import annotations

from typing import Any, ClassVar

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.configuration import ClaimOrExpression
from tests.authentication.oidccase import TokenCase


class ClaimTests(TokenCase):
    """What claims make of a user."""

    mapping: ClassVar[dict[str, Any]] = {
        "groups": ClaimOrExpression("roles", "g:"),
        "uid": ClaimOrExpression("uid"),
        "required_claims": {"hd": "example.com"},
    }

    def token(self, **claims: Any) -> str:
        """A token that has what is required."""
        return self.issuer.token(**{"hd": "example.com", "uid": "u", **claims})

    def test_all(self) -> None:
        """Names get their prefixes; a single group needs no list."""
        user = self.user(self.token(roles="a"))
        self.assertEqual(user, UserInfo("oidc:alice", "u", ("g:a", "system:authenticated")))
        self.assertEqual(self.user(self.token(roles=["a", "b"])).groups[:2], ("g:a", "g:b"))  # type: ignore[union-attr]
        self.assertEqual(self.user(self.token(roles=[])).groups, ("system:authenticated",))  # type: ignore[union-attr]

    def test_wrong_types(self) -> None:
        """What is no text is refused, in the words of Go."""
        for claims, text in (
            (
                {"sub": 5},
                'oidc: parse username claims "sub": json: cannot unmarshal number into Go value of type string',
            ),
            ({"sub": None}, 'oidc: parse username claims "sub": claim not present'),
            (
                {"roles": {"a": 1}},
                'oidc: parse groups claim "roles": json: cannot unmarshal object into Go value of type string',
            ),
            (
                {"roles": ["a", 5]},
                'oidc: parse groups claim "roles": json: cannot unmarshal array into Go value of type string',
            ),
            ({"uid": None}, 'oidc: parse uid claim "uid": claim not present'),
            ({"hd": None}, "oidc: required claim hd not present in ID token"),
            ({"hd": "x"}, "oidc: required claim hd value does not match. Got = x, want = example.com"),
            ({"hd": True}, "oidc: parse claim hd: json: cannot unmarshal bool into Go value of type string"),
        ):
            self.assertEqual(self.refused(self.token(**claims)), text)

    def test_empty_name(self) -> None:
        """Nobody is without a name."""
        self.tokens.configure([self.configuration(username=ClaimOrExpression("sub"))])
        self.assertEqual(self.refused(self.token(sub="")), "oidc: an empty username is not allowed")

    def test_email(self) -> None:
        """An address counts unless the issuer says that it has not been verified."""
        self.tokens.configure([self.configuration(username=ClaimOrExpression("email"))])
        self.assertIsNotNone(self.user(self.token(email="a@b")))
        self.assertIsNotNone(self.user(self.token(email="a@b", email_verified=True)))
        for said, text in (
            (False, "oidc: email not verified"),
            (
                "true",
                "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool",
            ),
        ):
            self.assertEqual(self.refused(self.token(email="a@b", email_verified=said)), text)
