"""Tests for L{kubetwist.cli.flags.generic}."""

from __future__ import annotations

from twisted.python.usage import UsageError

from ..commandlines import CommandLineTestCase, parsed


class GenericTests(CommandLineTestCase):
    """Flags for browsers."""

    def test_browsers(self) -> None:
        """HSTS directives and CORS patterns are validated. Patterns must be anchored."""
        given = parsed("--strict-transport-security-directives=max-age=31536000,includeSubDomains,preload")
        self.assertEqual(len(given["strict-transport-security-directives"]), 3)
        self.assertRaises(UsageError, parsed, "--strict-transport-security-directives=max-age")
        self.assertEqual(
            parsed("--cors-allowed-origins=//a$,^https://b:")["cors-allowed-origins"], ("//a$", "^https://b:")
        )
        for pattern, why in (
            ("example.com", "regular expression does not pin to start/end of host in the origin header"),
            ("^a(", "error parsing regexp: missing closing ): `^a(`"),
        ):
            self.assert_rejected(
                f'invalid argument "{pattern}" for "--cors-allowed-origins" flag: {why}',
                f"--cors-allowed-origins={pattern}",
            )
