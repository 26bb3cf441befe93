"""Tests of the tokens, of the authenticator, and of a server that uses it."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import treq
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.http_headers import Headers

from hashedtokens.__main__ import main
from hashedtokens.authenticator import DAY
from hashedtokens.tokens import create_token, read_tokens
from kubetwist.api.resource import UserInfo
from kubetwist.server.errors import StartError
from kubetwist.testing.authentication import AuthenticationOutcome, AuthenticatorHarness
from kubetwist.testing.memory import START
from kubetwist.testing.trial import KubeAPIMixin

ID = "0123456789abcdef"
TABLE = f'["{ID}"]\nhash = "{"00" * 32}"\nuser = "alice"\n'


class TokensTests(SynchronousTestCase):
    """The file of tokens."""

    def test_created(self) -> None:
        """A new token has another secret each time, and the file does not contain it."""
        token, table = create_token("alice", ["developers", "on call"], START)
        other, _ = create_token("alice", [], None)
        self.assertNotEqual(token, other)
        self.assertNotIn(token.rpartition("_")[2], table)
        (entry,) = read_tokens(table.encode()).values()
        self.assertEqual((entry.user, entry.expires), (UserInfo("alice", groups=("developers", "on call")), START))

    def test_names(self) -> None:
        """Names that would change the file, or belong to components of the cluster, are refused."""
        for user, groups in (('a"\n', []), ("a\\", []), ("", []), ("system:admin", []), ("a", ["system:masters"])):
            self.assertRaises(ValueError, create_token, user, groups, None)

    def test_invalid(self) -> None:
        """An invalid file is refused with the id of the token and the reason, without the hash."""
        for content, reason in (
            ('["x"]', "token x: an id has 16 hexadecimal digits"),
            (f'{ID} = "x"', f"token {ID}: it is not a table"),
            (TABLE + "user2 = 1", f"token {ID}: unknown field: user2"),
            (TABLE.replace("0" * 64, "0" * 63), f"token {ID}: hash has 64 hexadecimal digits"),
            (TABLE + "groups = 1", f"token {ID}: groups must be a list of names without the prefix system:"),
            (TABLE + "uid = 1", f"token {ID}: uid must be a text"),
            (
                TABLE + "expires = 2027-01-31T00:00:00",
                f"token {ID}: expires must be a time with a time zone, such as 2027-01-31T00:00:00Z",
            ),
        ):
            error = self.assertRaises(ValueError, read_tokens, content.encode())
            self.assertEqual(str(error), reason)
        for damaged in (b"[", b"\xff"):
            self.assertRaises(ValueError, read_tokens, damaged)

    def test_command(self) -> None:
        """The command prints the table for the file, and separately the token."""
        tables, tokens = io.StringIO(), io.StringIO()
        with redirect_stdout(tables), redirect_stderr(tokens):
            main(["alice", "--group=developers", "--days=0"])
        (entry,) = read_tokens(tables.getvalue().encode()).values()
        self.assertEqual((entry.user.groups, entry.expires), (("developers",), None))
        self.assertRegex(tokens.getvalue(), r"^hashed_[0-9a-f]{16}_[0-9a-f]{64}\n$")


class AuthenticatorTests(SynchronousTestCase):
    """The authenticator without a server."""

    def setUp(self) -> None:
        """Create a token that is valid for a month."""
        self.token, self.table = create_token("alice", ["developers"], START + 30 * DAY)
        self.token_id = next(iter(read_tokens(self.table.encode())))

    def authenticate(self, token: str) -> AuthenticationOutcome:
        """Authenticate a request with a token."""
        path = Path(self.mktemp())
        path.write_text(self.table)
        harness = AuthenticatorHarness("HashedTokens", f"--plugin-config-file=HashedTokens={path}")
        return harness.authenticate({"Authorization": f"Bearer {token}"})

    def test_disabled(self) -> None:
        """Without a file, also if another plugin has one, there is no authenticator."""
        for flags in ((), ("--plugin-config-file=Other=x",)):
            self.assertIsNone(AuthenticatorHarness("HashedTokens", *flags).authenticator)

    def test_user(self) -> None:
        """A token authenticates its user; audit events have its id."""
        outcome = self.authenticate(self.token)
        self.assertEqual(outcome.user, UserInfo("alice", groups=("developers", "system:authenticated")))
        self.assertEqual(outcome.request.warnings, [])
        self.assertEqual(outcome.request.annotations, {"hashedtokens.example.org/id": self.token_id})

    def test_other_tokens(self) -> None:
        """Tokens of another form are left to other authenticators."""
        for token in ("abc", self.token.removeprefix("hashed_"), f"{self.token}0", f"{self.token}\n"):
            outcome = self.authenticate(token)
            self.assertEqual((outcome.user, outcome.error), (None, None))

    def test_unknown(self) -> None:
        """A wrong secret and an unknown id are refused, and the secret is not in the text."""
        prefix, _, secret = self.token.rpartition("_")
        other = ("0" if secret[0] != "0" else "1") + secret[1:]
        for token in (f"{prefix}_{other}", f"hashed_{ID}_{secret}"):
            outcome = self.authenticate(token)
            self.assertEqual(outcome.code, 401)
            self.assertRegex(str(outcome.error), r"^token [0-9a-f]{16} is unknown$")

    def test_expiry(self) -> None:
        """Clients are warned in the last week of a token, and refused from its expiry on."""
        for remaining, days in ((6.5, "7 days"), (1.0, "1 day"), (0.01, "1 day")):
            token, self.table = create_token("alice", [], START + remaining * DAY)
            (warning,) = self.authenticate(token).request.warnings
            self.assertTrue(warning.endswith(f" expires in {days}"), warning)
        for remaining in (0, -DAY):
            token, self.table = create_token("alice", [], START + remaining)
            self.assertTrue(str(self.authenticate(token).error).endswith(" has expired"))


class ServerTests(KubeAPIMixin, TestCase):
    """A server with the authenticator."""

    REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    async def review(self, server: Any, token: str) -> tuple[int, Any, Any]:
        """Request the user of a token; return the code, the body and the warnings."""
        client = server.connection.treq()
        headers = Headers({"Authorization": [f"Bearer {token}"]})
        response = await client.post(self.REVIEW, json={}, headers=headers)
        return response.code, await treq.json_content(response), response.headers.getRawHeaders("Warning")

    async def test_requests(self) -> None:
        """Requests have the user of their token; a revoked token is refused when the file has been read again."""
        path = Path(self.mktemp())
        token, table = create_token("alice", ["developers"], None)
        path.write_text(table)
        server = await self.startKubeAPI(f"--plugin-config-file=HashedTokens={path}")
        code, answer, warnings = await self.review(server, token)
        self.assertEqual((code, warnings), (201, None), answer)
        user = answer["status"]["userInfo"]
        self.assertEqual((user["username"], user["groups"]), ("alice", ["developers", "system:authenticated"]))
        code, answer, _ = await self.review(server, token[:-1] + ("0" if token[-1] != "0" else "1"))
        self.assertEqual((code, answer["reason"]), (401, "Unauthorized"))
        path.write_text("")
        await server.reload_files()
        code, answer, _ = await self.review(server, token)
        self.assertEqual((code, answer["reason"]), (401, "Unauthorized"))

    async def test_warning(self) -> None:
        """A token that expires soon is answered with a warning, and refused after its expiry."""
        path = Path(self.mktemp())
        path.write_text("")
        server = await self.startKubeAPI(f"--plugin-config-file=HashedTokens={path}")
        token, table = create_token("alice", [], server.now + 2 * DAY)
        path.write_text(table)
        await server.reload_files()
        code, _, warnings = await self.review(server, token)
        self.assertEqual(code, 201)
        self.assertEqual([text.endswith(' expires in 2 days"') for text in warnings], [True])
        server.advance_time(2 * DAY)
        code, answer, _ = await self.review(server, token)
        self.assertEqual((code, answer["reason"]), (401, "Unauthorized"))

    async def test_invalid_file(self) -> None:
        """An invalid file stops the start with the reason."""
        path = Path(self.mktemp())
        path.write_text("[x]")
        with self.assertRaises(StartError) as caught:
            await self.startKubeAPI(f"--plugin-config-file=HashedTokens={path}")
        reason = "token x: an id has 16 hexadecimal digits"
        self.assertEqual(str(caught.exception), f"--plugin-config-file: {path}: {reason}")
