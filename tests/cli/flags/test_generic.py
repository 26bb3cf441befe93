"""Tests for L{kubetwist.cli.flags.generic}."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from twisted.python.usage import UsageError

from kubetwist.api.featuregates import FeatureGates
from kubetwist.cli.kubeapi import Options

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


class FeatureGatesTests(CommandLineTestCase):
    """C{--feature-gates} and the flags of emulation."""

    def test_settings(self) -> None:
        """Settings of a repeated flag are merged."""
        options = parsed("--feature-gates=WatchList=false", "--feature-gates=EnvFiles=false,WatchList=true")
        features = FeatureGates.from_options(options)
        self.assertEqual((features.enabled("WatchList"), features.enabled("EnvFiles")), (True, False))

    def test_errors(self) -> None:
        """Wrong settings are usage errors of one line."""
        for flags, message in (
            ("--feature-gates=NoSuchGate=true", "unrecognized feature gate: NoSuchGate"),
            (
                "--feature-gates=ImageVolume=false",
                "cannot set feature gate ImageVolume to false, feature is locked to true",
            ),
            ("--feature-gates=WatchList", "missing bool value for WatchList"),
            (
                "--emulated-version=1.30",
                "[emulation version 1.30 is not between [1.33, 1.36.0], minCompatibility"
                "Version version 1.33 is not between [1.33, 1.30]]",
            ),
            ("--emulated-version=new", 'could not parse "new" as version'),
            (
                "--emulation-forward-compatible",
                "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same"
                " as the binary version",
            ),
            (
                "--runtime-config-emulation-forward-compatible",
                "ServerRunOptions.RuntimeConfigEmulationForwardCompatible cannot be set to true if the emulation"
                " version is the same as the binary version",
            ),
        ):
            self.assert_rejected(message, flags)

    def test_release(self) -> None:
        """Each release has certain gates."""
        self.assert_rejected(
            "unrecognized feature gate: EnvFiles", "--kubernetes-version=1.33", "--feature-gates=EnvFiles=true"
        )
        parsed("--kubernetes-version=1.34", "--feature-gates=EnvFiles=true")

    def test_help(self) -> None:
        """The help lists the gates of the release, or of the emulated one."""
        self.assertIn("            kube:EnvFiles=true|false (BETA - default=true)\n", str(Options()))
        for flags, line in (
            (["--kubernetes-version=1.34"], "kube:EnvFiles=true|false (ALPHA - default=false)"),
            (["--emulated-version=1.34"], "kube:EnvFiles=true|false (ALPHA - default=false)"),
            (["--emulated-version=0.1"], "kube:EnvFiles=true|false (BETA - default=true)"),
            (["--nonsense"], "kube:EnvFiles=true|false (BETA - default=true)"),
        ):
            printed = StringIO()
            with redirect_stdout(printed), self.assertRaises(SystemExit):
                parsed(*flags, "--help")
            self.assertIn(f"            {line}\n", printed.getvalue(), flags)
