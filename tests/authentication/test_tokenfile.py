"""Tests for L{kubetwist.authentication.tokenfile}."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import tokenfile
from kubetwist.authentication.tokenfile import BadTokenFile, TokenFile
from kubetwist.interfaces import IAuthenticator
from tests.authentication.requests import Request


class TokenFileTests(SynchronousTestCase):
    """Tests for L{TokenFile}."""

    def read(self, content: str) -> TokenFile:
        """Write a file and read it."""
        path = Path(self.mktemp())
        path.write_text(content)
        return TokenFile.read(path)

    def test_users(self) -> None:
        """A line has a token, a name, a uid and quoted groups; all users are authenticated."""
        tokens = self.read('t1,alice,u1,"developers,qa"\n\nt2,bob,u2\n')
        verifyObject(IAuthenticator, tokens)
        alice = tokens.authenticate(Request("Bearer t1"))
        self.assertEqual(alice, UserInfo("alice", "u1", ("developers", "qa", "system:authenticated")))
        self.assertEqual(tokens.authenticate(Request("Bearer t2")), UserInfo("bob", "u2", ("system:authenticated",)))

    def test_unknown_token(self) -> None:
        """Unknown tokens and requests without a token are ignored."""
        tokens = self.read("t1,alice,u1\n")
        self.assertIsNone(tokens.authenticate(Request("Bearer t")))
        self.assertIsNone(tokens.authenticate(Request("Bearer t11")))
        self.assertIsNone(tokens.authenticate(Request()))

    def test_connection(self) -> None:
        """A connection may change its token, and its last token is not accepted when the users are replaced."""
        tokens = self.read("t1,alice,u1\nt2,bob,u2\n")
        connection = Request().connection

        def authenticate(token: str) -> str:
            request = Request(f"Bearer {token}")
            request.connection = connection
            user = tokens.authenticate(request)
            return "" if user is None else user.name

        self.assertEqual(
            [authenticate(token) for token in ("t1", "t1", "t2", "t", "t1")], ["alice"] * 2 + ["bob", "", "alice"]
        )
        tokens.set_users({"t1": UserInfo("carol")})
        self.assertEqual([authenticate(token) for token in ("t1", "t2")], ["carol", ""])
        tokens.set_users({})
        self.assertEqual(authenticate("t1"), "")

    def test_empty_token(self) -> None:
        """A line without a token is skipped."""
        self.assertIsNone(self.read(",alice,u1\n").authenticate(Request("Bearer ")))

    def test_bad_files(self) -> None:
        """An invalid file is rejected with the reason."""
        error = self.assertRaises(BadTokenFile, self.read, "t1,alice\n")
        self.assertIn("must have at least 3 columns (token, user name, user uid), found 2", str(error))
        self.assertRaises(BadTokenFile, self.read, 't1,alice,u1,"open\n')
        self.assertRaises(BadTokenFile, TokenFile.read, Path("/nowhere/at/all"))

    def test_option(self) -> None:
        """Without the flag there is no authenticator."""
        self.assertIsNone(tokenfile.make({"token-auth-file": ""}, None))
