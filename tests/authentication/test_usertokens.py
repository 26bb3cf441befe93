"""Tests for L{kubetwist.authentication.usertokens}."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis.strategies import binary, dictionaries, lists, text

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.usertokens import UserTokens, make, parse_key, sign_user
from kubetwist.interfaces import IAuthenticator
from kubetwist.server.errors import StartError
from kubetwist.testing._plugincontext import make_context
from kubetwist.testing.memory import MemoryServer
from tests.authentication.requests import Request

KEY = b"k" * 32
NAMES = text(min_size=1).filter(lambda name: name.isprintable())


class UserTokensTests(SynchronousTestCase):
    """L{UserTokens}."""

    @given(NAMES, text(), lists(NAMES), dictionaries(NAMES, lists(text(), min_size=1)))
    def test_user(self, name: str, uid: str, groups: list[str], extra: dict[str, list[str]]) -> None:
        """A token has all fields of a user, who is authenticated."""
        values = {key: tuple(value) for key, value in extra.items()}
        token = sign_user(KEY, UserInfo(name, uid, tuple(groups), values))
        user = UserTokens(KEY).authenticate(Request(f"Bearer {token}"))
        assert user is not None
        self.assertEqual((name, uid, values), (user.name, user.uid, user.extra))
        self.assertEqual({*groups, "system:authenticated"}, set(user.groups))

    def test_provides(self) -> None:
        """It is an authenticator."""
        verifyObject(IAuthenticator, UserTokens(KEY))

    def test_other_key(self) -> None:
        """Tokens of another key are ignored, also after a change of the key."""
        token = sign_user(KEY, UserInfo("alice"))
        tokens = UserTokens(b"o" * 32)
        self.assertIsNone(tokens.authenticate(Request(f"Bearer {token}")))
        tokens.set_key(KEY)
        self.assertIsNotNone(tokens.authenticate(Request(f"Bearer {token}")))

    def test_changed(self) -> None:
        """A changed token is ignored, wherever it is changed."""
        token = sign_user(KEY, UserInfo("alice"))
        tokens = UserTokens(KEY)
        for at in range(len(token)):
            changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
            self.assertIsNone(tokens.authenticate(Request(f"Bearer {changed}")), changed)
            self.assertIsNone(tokens.authenticate(Request(f"Bearer {token[:at]}")))

    @given(binary())
    def test_foreign_tokens(self, content: bytes) -> None:
        """Other tokens, and requests without a token, are ignored."""
        foreign = content.decode("latin-1").replace(" ", "")
        tokens = UserTokens(KEY)
        for token in (foreign, f"kubetwist-user.{foreign}", f"kubetwist-user.e30.{foreign}"):
            self.assertIsNone(tokens.authenticate(Request(f"Bearer {token}")))
        self.assertIsNone(tokens.authenticate(Request()))


class MakeTests(SynchronousTestCase):
    """L{make} and L{parse_key}."""

    def test_key(self) -> None:
        """White space around the key is ignored; short keys are errors."""
        self.assertEqual(KEY, parse_key(KEY + b"\n"))
        with self.assertRaisesRegex(ValueError, "the key has 31 bytes, must have at least 32"):
            parse_key(KEY[1:] + b" ")

    def test_file(self) -> None:
        """The key is read from the file for this plugin; without one there is no authenticator."""
        path = Path(self.mktemp()).absolute()
        path.write_bytes(KEY)
        for flags, found in (((f"--plugin-config-file=UserTokens={path}",), True), ((), False)):
            context = make_context(flags, MemoryServer())
            tokens = make(context.options, context)
            self.assertEqual(found, tokens is not None)
            if tokens is not None:
                self.assertEqual(KEY, tokens.key)
        path.write_bytes(b"short")
        context = make_context((f"--plugin-config-file=UserTokens={path}",), MemoryServer())
        with self.assertRaisesRegex(StartError, "the key has 5 bytes"):
            make(context.options, context)
