"""Tests for L{kubetwist.cli.flags.auditing}."""

from __future__ import annotations

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.kubeapi import Options


def options(*flags: str) -> Options:
    """Parse a command line."""
    made = Options()
    made.parseOptions(list(flags))
    return made


class FlagTests(SynchronousTestCase):
    """Validation of audit flags."""

    def error_of(self, *flags: str) -> str:
        """Return the error message for flags."""
        return str(self.assertRaises(UsageError, options, *flags))

    def test_refused(self) -> None:
        """Invalid flags are rejected with kube-apiserver's messages."""
        log, webhook = "--audit-log-path=-", "--audit-webhook-config-file=x"
        for flag, text in (
            (
                "--audit-log-mode=fast",
                'invalid audit log mode fast, allowed modes are "batch,blocking,blocking-strict"',
            ),
            ("--audit-log-format=xml", 'invalid audit log format xml, allowed formats are "legacy,json"'),
            ("--audit-log-maxage=-1", "--audit-log-maxage -1 can't be a negative number"),
            (
                "--audit-log-truncate-max-batch-size=1",
                "invalid audit truncate log max batch size 1, must be greater than max event size (102400)",
            ),
            (
                "--audit-log-version=audit.k8s.io/v1beta1",
                'invalid group version, allowed versions are ["audit.k8s.io/v1"]',
            ),
        ):
            self.assertEqual(self.error_of(log, flag), text)
            options(flag)
        for flag, text in (
            ("--audit-webhook-batch-buffer-size=0", "webhook buffer size 0"),
            ("--audit-webhook-batch-max-size=-1", "webhook max batch size -1"),
            ("--audit-webhook-batch-throttle-qps=0", "webhook throttle QPS 0"),
            ("--audit-webhook-batch-throttle-burst=0", "webhook throttle burst 0"),
        ):
            self.assertEqual(self.error_of(webhook, flag), f"invalid audit batch {text}, must be a positive number")
            options(webhook, "--audit-webhook-mode=blocking", flag)
