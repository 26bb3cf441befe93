"""Tests for L{kubetwist.authentication._claims}."""

from __future__ import annotations

from typing import Any, ClassVar

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.configuration import ClaimOrExpression
from tests.authentication.oidccase import TokenCase


class ClaimTests(TokenCase):
    """Tests for L{user_of_claims}."""

    mapping: ClassVar[dict[str, Any]] = {
        "groups": ClaimOrExpression("roles", "g:"),
        "uid": ClaimOrExpression("uid"),
        "required_claims": {"hd": "example.com"},
    }

    def token(self, **claims: Any) -> str:
        """Return the claims of a token with all required claims."""
        return self.issuer.token(**{"hd": "example.com", "uid": "u", **claims})

    def test_all(self) -> None:
        """Names and groups get their prefixes; a single group can be a string."""
        user = self.user(self.token(roles="a"))
        self.assertEqual(user, UserInfo("oidc:alice", "u", ("g:a", "system:authenticated")))
        self.assertEqual(self.user(self.token(roles=["a", "b"])).groups[:2], ("g:a", "g:b"))  # type: ignore[union-attr]
        self.assertEqual(self.user(self.token(roles=[])).groups, ("system:authenticated",))  # type: ignore[union-attr]

    def test_wrong_types(self) -> None:
        """A claim of the wrong type is rejected with the text of Go."""
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
            self.assertEqual(self.error_text(self.token(**claims)), text)

    def test_empty_name(self) -> None:
        """An empty user name is rejected."""
        self.tokens.configure([self.configuration(username=ClaimOrExpression("sub"))])
        self.assertEqual(self.error_text(self.token(sub="")), "oidc: an empty username is not allowed")

    def test_email(self) -> None:
        """An email address is accepted unless C{email_verified} is false."""
        self.tokens.configure([self.configuration(username=ClaimOrExpression("email"))])
        self.assertIsNotNone(self.user(self.token(email="a@b")))
        self.assertIsNotNone(self.user(self.token(email="a@b", email_verified=True)))
        for verified, text in (
            (False, "oidc: email not verified"),
            (
                "true",
                "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool",
            ),
        ):
            self.assertEqual(self.error_text(self.token(email="a@b", email_verified=verified)), text)
