"""Tests for L{kubetwist.authentication._tokenrefresh}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from kubetwist.api.resource import UserInfo
from kubetwist.authentication._tokenrefresh import INTERVAL, MARGIN, TokenRefresher
from kubetwist.authentication.sessions import SessionStore
from kubetwist.authentication.union import TokenAuthentication
from tests.authentication.test_oidcclient import ClientCase
from tests.oidcissuer import NOW

ALICE = UserInfo("alice")


class RefreshTests(ClientCase):
    """Sessions outlast their ID tokens if there is a refresh token."""

    def setUp(self) -> None:
        """Begin a session of Alice."""
        super().setUp()
        self.provider.refreshes = True
        self.provider._now = lambda: NOW + self.clock.seconds()
        self.user: UserInfo | None = ALICE
        now = self.provider._now
        self.store = SessionStore(self.clock.seconds, now)
        self.store.refresh = TokenRefresher(self.client, self.authenticate, now).refresh
        self.tokens = self.redeem(self.response())
        self.secrets = self.store.begin(self.tokens.id_token, ALICE, self.tokens.refresh_token)

    def authenticate(self, token: str) -> Any:
        """Authenticate a new token."""
        return succeed(TokenAuthentication(self.user))

    def find(self) -> Any:
        """Return the session, or a Deferred."""
        return self.store.find(self.secrets[0].encode(), self.secrets[1].encode())

    def remaining(self) -> float | None:
        """Return the seconds until the session ends."""
        return self.store.remaining(self.secrets[0].encode(), self.secrets[1].encode())

    def test_early(self) -> None:
        """A token is kept until a minute before its end."""
        self.clock.advance(600 - MARGIN - 1)
        self.assertEqual(self.find().token, self.tokens.id_token)
        self.assertEqual(self.provider.grants, ["authorization_code"])

    def test_in_time(self) -> None:
        """A minute before its end a token is refreshed; the session does not end with it."""
        self.assertGreater(self.remaining() or 0, 3600)
        self.clock.advance(600 - MARGIN)
        self.assertNotEqual(self.find().token, self.tokens.id_token)
        self.clock.advance(600 - MARGIN)
        self.find()
        self.assertEqual(self.provider.grants, ["authorization_code", "refresh_token", "refresh_token"])

    def test_once(self) -> None:
        """Requests during a refresh go on with the valid token, and begin no other refresh."""
        self.clock.advance(600 - MARGIN)
        self.network.held = held = Deferred()
        for _ in range(3):
            self.assertEqual(self.find().token, self.tokens.id_token)
        held.callback(None)
        self.assertNotEqual(self.find().token, self.tokens.id_token)
        self.assertEqual(self.provider.grants.count("refresh_token"), 1)

    def test_late(self) -> None:
        """After the end of the token, requests wait for the refresh."""
        self.clock.advance(1000)
        self.network.held = held = Deferred()
        waiting = [self.find(), self.find()]
        for one in waiting:
            self.assertNoResult(one)
        held.callback(None)
        for one in waiting:
            self.assertNotEqual(self.successResultOf(one).token, self.tokens.id_token)
        self.assertEqual(self.provider.grants.count("refresh_token"), 1)

    def test_revoked(self) -> None:
        """If the provider refuses the refresh token, the session ends with its token."""
        self.provider._refresh_tokens.clear()
        self.clock.advance(600 - MARGIN)
        self.assertEqual(self.find().token, self.tokens.id_token)
        self.assertEqual(self.remaining(), MARGIN)
        self.clock.advance(INTERVAL)
        self.find()
        self.assertEqual(self.provider.grants.count("refresh_token"), 1)

    def test_provider_down(self) -> None:
        """If the provider does not answer, the refresh is tried again, at most every ten seconds."""
        self.provider.override = 503, b"{}"
        self.clock.advance(600 - MARGIN)
        self.find()
        self.find()
        self.assertEqual(self.provider.grants.count("refresh_token"), 1)
        self.provider.override = None
        self.clock.advance(INTERVAL)
        self.assertNotEqual(self.find().token, self.tokens.id_token)

    def test_other_user(self) -> None:
        """A new token that the server does not accept, or accepts for another user, is not used."""
        for user in (None, UserInfo("mallory")):
            self.user = user
            secrets = self.store.begin(self.tokens.id_token, ALICE, self.redeem(self.response()).refresh_token)
            self.secrets = secrets
            self.clock.advance(600 - MARGIN - self.clock.seconds())
            self.assertEqual(self.find().token, self.tokens.id_token)
            self.assertEqual(self.remaining(), MARGIN)

    def test_without(self) -> None:
        """Sessions without a refresh token, or with a token without an expiry, are not refreshed."""
        for token, refresh_token in ((self.tokens.id_token, ""), ("opaque", "x")):
            self.secrets = self.store.begin(token, ALICE, refresh_token)
            self.clock.advance(600)
            self.assertEqual(self.find().token, token)
        self.assertEqual(self.provider.grants, ["authorization_code"])

    def test_unexpected(self) -> None:
        """An unexpected error is logged, and the session stays usable."""
        self.patch(self.client, "refresh", lambda tokens: 1 / 0)
        self.clock.advance(600)
        self.assertEqual(self.find().token, self.tokens.id_token)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
