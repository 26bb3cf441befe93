"""Tests for L{kubetwist.cli.compatflags}."""

from __future__ import annotations

from twisted.python.usage import UsageError

from kubetwist.cli.compatflags import Support, limited_flags
from kubetwist.cli.flagtable import FLAGS

from .commandlines import CommandLineTestCase, parsed


class CompatibilityTests(CommandLineTestCase):
    """Flags with one accepted value, or without effect."""

    def test_defaults_are_accepted(self) -> None:
        """Compatibility flags accept their default."""
        limited = limited_flags(FLAGS)
        self.assertGreater(len(limited), 20)
        for flag in FLAGS:
            if flag.name not in limited:
                continue
            text = str(flag.default).lower() if isinstance(flag.default, bool) else str(flag.default)
            if flag.flag_type.metavar == "duration":
                text = f"{flag.default}s"
            self.assertEqual(parsed(f"--{flag.name}={text}")[flag.name], flag.default, flag.name)

    def test_reasons(self) -> None:
        """An unsupported flag is rejected with the reason."""
        self.assert_rejected(
            'invalid argument "/events#https://127.0.0.1:4002" for "--etcd-servers-overrides" flag: all resources are'
            " in one store, because one revision orders all changes; move the objects of other servers to"
            " --etcd-servers and omit the flag",
            "--etcd-servers-overrides=/events#https://127.0.0.1:4002",
        )
        self.assert_rejected(
            'invalid argument "application/yaml" for "--storage-media-type" flag: objects are stored as'
            " application/json or application/vnd.kubernetes.protobuf",
            "--storage-media-type=application/yaml",
        )
        self.assert_rejected(
            'invalid argument "1" for "--goaway-chance" flag: it must be between 0 and 0.02', "--goaway-chance=1"
        )
        for argument in ("--peer-ca-file=x", "--contention-profiling", "--egress-selector-config-file=x"):
            self.assertRaises(UsageError, parsed, argument)

    def test_support(self) -> None:
        """Each way in which flags are limited is used, with the values that it accepts."""
        limited = limited_flags(FLAGS)
        self.assertEqual({one.support for one in limited.values()}, set(Support))
        self.assertIs(limited["enable-garbage-collector"].support, Support.RESTRICTED)
        self.assertEqual(parsed("--log-flush-frequency=1m")["log-flush-frequency"], 60.0)
        self.assertEqual(parsed("--etcd-count-metric-poll-period=2s")["etcd-count-metric-poll-period"], 2.0)
        self.assertNotIn("secure-port", limited)

    def test_formatted(self) -> None:
        """A limited flag is formatted as its type."""
        options = parsed("--log-flush-frequency=1m30s")
        self.assertEqual(options.formatted_values()["log-flush-frequency"], "1m30s")
        self.assertEqual(options.typed_values()["log-flush-frequency"], "1m30s")
