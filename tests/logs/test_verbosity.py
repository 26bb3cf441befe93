"""Tests for L{kubetwist.logs.verbosity}."""

from __future__ import annotations

from twisted.logger import LogLevel
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.flagtable import FLAGS
from kubetwist.cli.flagtypes import FlagError, parse_flags
from kubetwist.logs.verbosity import Verbosity, parse_level, parse_modules


class VerbosityTests(SynchronousTestCase):
    """How much is logged."""

    def test_modules(self) -> None:
        """A pattern means the last part of a module's name, with a slash all of it; the first that fits decides."""
        verbosity = Verbosity(2, parse_modules("watch*=5,kubetwist/storage/*=4,window=9"))
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.watchcache"), 5)
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.window"), 4)
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.watchcache.WatchCache"), 5)
        self.assertEqual(verbosity.level_for("kubetwist.storage.cache.window._Window"), 4)
        self.assertEqual(verbosity.level_for("kubetwist.server.lifecycle"), 2)

    def test_changed(self) -> None:
        """A level set while the server runs counts at once, but not for modules that have one of their own."""
        verbosity = Verbosity(0, parse_modules("site=1"))
        self.assertFalse(verbosity.requests)
        self.assertEqual(verbosity.level_for("kubetwist.server.lifecycle"), 0)
        verbosity.set(4)
        self.assertTrue(verbosity.requests)
        self.assertEqual(verbosity.level_for("kubetwist.server.lifecycle"), 4)
        self.assertEqual(verbosity.level_for("kubetwist.http.site"), 1)

    def test_requests(self) -> None:
        """Lines about requests can be had without anything else, and be left out of everything else."""
        self.assertTrue(Verbosity(0, parse_modules("httplog=3")).requests)
        self.assertFalse(Verbosity(9, parse_modules("httplog=2")).requests)

    def test_debugging(self) -> None:
        """What is for debugging is shown from level 4 on, and what is not always."""
        event = {"log_level": LogLevel.debug, "log_namespace": "kubetwist.storage.cache.window"}
        self.assertFalse(Verbosity(3).enabled(event))
        self.assertTrue(Verbosity(4).enabled(event))
        self.assertTrue(Verbosity(0, parse_modules("window=4")).enabled(event))
        self.assertTrue(Verbosity(0).enabled({**event, "log_level": LogLevel.info}))
        self.assertFalse(Verbosity(9).enabled({**event, "log_level": LogLevel.info}, LogLevel.warn))
        self.assertTrue(Verbosity(0).enabled({**event, "log_level": LogLevel.error}, LogLevel.warn))

    def test_wrong(self) -> None:
        """What is no level, or no list of patterns, is refused."""
        for text in ("", "x", "1.5", "0x3", "9" * 30, " 3", "٣"):
            self.assertRaises(ValueError, parse_level, text)
        for text in ("a", "a=", "=3", "a=x", "a=-1", "a=1,b", "a=1," * 2000):
            self.assertRaises(ValueError, parse_modules, text)

    def test_flags(self) -> None:
        """The level may be given as -v=3, -v3, -v 3 and --v=3; no other flag has a single letter."""
        for arguments in (["-v=3"], ["-v3"], ["-v", "3"], ["--v=3"], ["--v", "3"]):
            self.assertEqual(parse_flags(FLAGS, arguments), {"v": 3}, arguments)
        for arguments in (["-v"], ["-vx"], ["-w=3"], ["-vmodule=a=1"], ["-"]):
            self.assertRaises(FlagError, parse_flags, FLAGS, arguments)
