"""Tests for L{kubetwist.logs.verbosity}."""

from __future__ import annotations

from twisted.logger import LogLevel
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.flagtypes import FlagError, parse_flags
from kubetwist.logs.verbosity import Verbosity, parse_level, parse_modules


class VerbosityTests(SynchronousTestCase):
    """Log levels."""

    def test_modules(self) -> None:
        """
        A pattern matches the last part of a module name, or with a slash the whole name. The first matching pattern
        decides.
        """
        verbosity = Verbosity(2, parse_modules("watch*=5,kubetwist/storage/*=4,window=9"))
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.watchcache"), 5)
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.window"), 4)
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.watchcache.WatchCache"), 5)
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.window._Window"), 4)
        self.assertEqual(verbosity.level_for("kubetwist.server.lifecycle"), 2)

    def test_changed(self) -> None:
        """A level that is set at run time applies immediately, except to modules with a matching pattern."""
        verbosity = Verbosity(0, parse_modules("site=1"))
        self.assertFalse(verbosity.requests)
        self.assertEqual(verbosity.level_for("kubetwist.server.lifecycle"), 0)
        verbosity.set(4)
        self.assertTrue(verbosity.requests)
        self.assertEqual(verbosity.level_for("kubetwist.server.lifecycle"), 4)
        self.assertEqual(verbosity.level_for("kubetwist.http.site"), 1)

    def test_requests(self) -> None:
        """The access log can be enabled and disabled with the module httplog."""
        self.assertTrue(Verbosity(0, parse_modules("httplog=3")).requests)
        self.assertFalse(Verbosity(9, parse_modules("httplog=2")).requests)

    def test_debugging(self) -> None:
        """Debug events are logged from level 4 on, other events always."""
        event = {"log_level": LogLevel.debug, "log_namespace": "kubetwist.storage.cache.window"}
        self.assertFalse(Verbosity(3).enabled(event))
        self.assertTrue(Verbosity(4).enabled(event))
        self.assertTrue(Verbosity(0, parse_modules("window=4")).enabled(event))
        self.assertTrue(Verbosity(0).enabled({**event, "log_level": LogLevel.info}))
        self.assertFalse(Verbosity(9).enabled({**event, "log_level": LogLevel.info}, LogLevel.warn))
        self.assertTrue(Verbosity(0).enabled({**event, "log_level": LogLevel.error}, LogLevel.warn))

    def test_wrong(self) -> None:
        """Invalid levels and patterns are rejected."""
        for text in ("", "x", "1.5", "0x3", "9" * 30, " 3", "٣"):
            self.assertRaises(ValueError, parse_level, text)
        for text in ("a", "a=", "=3", "a=x", "a=-1", "a=1,b", "a=1," * 2000):
            self.assertRaises(ValueError, parse_modules, text)

    def test_flags(self) -> None:
        """The level can be given as -v=3, -v3, -v 3 and --v=3. No other flag has a single letter."""
        for arguments in (["-v=3"], ["-v3"], ["-v", "3"], ["--v=3"], ["--v", "3"]):
            self.assertEqual(parse_flags(FLAGS, arguments), {"v": 3}, arguments)
        for arguments in (["-v"], ["-vx"], ["-w=3"], ["-vmodule=a=1"], ["-"]):
            self.assertRaises(FlagError, parse_flags, FLAGS, arguments)
