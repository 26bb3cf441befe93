"""Tests for L{kubetwist.cli.flagformat}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.flagformat import flags_of, typed_flags, typed_value
from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.flagtypes import parse_flags

from .commandlines import parsed


class FormatTests(SynchronousTestCase):
    """Formats of flag values."""

    def test_passwords(self) -> None:
        """A password in a URL is redacted."""
        options = parse_flags(FLAGS, ["--etcd-servers=https://a:hunter2@b:2379,https://c"])
        self.assertEqual(flags_of(FLAGS, options), {"etcd-servers": "[https://CLASSIFIED@b:2379,https://c]"})
        flag = next(one for one in FLAGS if one.name == "etcd-servers")
        self.assertEqual(typed_value(flag, options["etcd-servers"]), ["https://CLASSIFIED@b:2379", "https://c"])

    def test_values(self) -> None:
        """Lists are in brackets and mappings are sorted as text. JSON values keep their types, except durations."""
        options = parsed(
            "--request-timeout=90s",
            "--feature-gates=WatchList=false,EnvFiles=true",
            "--controllers=a,b",
            "--vmodule=x=2",
        )
        text, values = flags_of(FLAGS, options), typed_flags(FLAGS, options)
        wanted = {
            "request-timeout": ("1m30s", "1m30s"),
            "feature-gates": (":WatchList=false,:EnvFiles=true", {"": ["WatchList=false", "EnvFiles=true"]}),
            "controllers": ("[a,b]", ["a", "b"]),
            "vmodule": ("x=2", "x=2"),
            "secure-port": ("6443", 6443),
            "memory-limit": ("", None),
            "anonymous-auth": ("true", True),
        }
        for name, (shown, value) in wanted.items():
            self.assertEqual((text[name], values[name]), (shown, value), name)
