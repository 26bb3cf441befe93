"""Tests for L{kubetwist.cli.compatflags}."""

from __future__ import annotations

from twisted.python.usage import UsageError

from kubetwist.cli.flagtable import FLAGS

from .commandlines import CommandLineTestCase, parsed


class CompatibilityTests(CommandLineTestCase):
    """Flags with one accepted value, or without effect."""

    def test_defaults_are_accepted(self) -> None:
        """Compatibility flags accept their default."""
        unused = {flag.name for flag in FLAGS if flag.help.startswith("Not supported: ")}
        self.assertGreater(len(unused), 15)
        unused |= {"permit-address-sharing", "log-flush-frequency"}
        unused |= {"storage-media-type", "enable-garbage-collector"}
        unused |= {f"coordinated-leadership-{name}" for name in ("lease-duration", "renew-deadline", "retry-period")}
        found = [flag for flag in FLAGS if flag.name in unused]
        self.assertEqual(len(found), len(unused))
        for flag in found:
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
        for argument in ("--permit-port-sharing", "--contention-profiling", "--egress-selector-config-file=x"):
            self.assertRaises(UsageError, parsed, argument)
