"""Tests for F{benchmarks/soak.py}: a run of seconds, its limits, and its certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script
from .test_soakreport import sample

script = load_script("benchmarks/soak.py")


class RunTests(SynchronousTestCase):
    """A short run with a server in a separate process."""

    def test_short(self) -> None:
        """A run of three seconds has no errors and problems, and writes its samples and the plot."""
        folder = Path(self.mktemp())
        folder.mkdir()
        rows, plot, log = folder / "soak.csv", folder / "soak.svg", folder / "log"
        small = ["--secrets=40", "--namespaces=2", "--watchers=8", "--rate=50", "--sample=0.5", "--garbage=0.5"]
        code = script.main([*small, f"--hours={3 / 3600}", f"--csv={rows}", f"--plot={plot}", f"--log={log}"])
        self.assertEqual(code, 0, log.read_text())
        samples = script.soakreport.read_csv(rows)
        self.assertTrue(samples)
        self.assertEqual([one.codes for one in samples if one.errors], [])
        self.assertGreater(sum(one.events for one in samples), 0)
        self.assertTrue(all(one.rss and one.files and one.threads for one in samples))
        self.assertTrue(plot.read_text().startswith("<svg"))


class LimitTests(SynchronousTestCase):
    """The limits that decide the exit code."""

    def exceeded(self, samples: list[object], *flags: str) -> list[str]:
        """Return the limits that samples exceed."""
        found: list[str] = script.exceeded(samples, script.parse([*flags]))
        return found

    def test_within(self) -> None:
        """A run without errors and growth exceeds no limit."""
        self.assertEqual(self.exceeded([sample(60.0 * n) for n in range(30)]), [])

    def test_errors(self) -> None:
        """Errors and problems exceed their limits."""
        samples = [sample(60.0 * n, errors=1, problems=1) for n in range(3)]
        self.assertEqual(self.exceeded(samples), ["3 errors, more than 0", "3 problems"])
        self.assertEqual(self.exceeded(samples, "--max-errors=3"), ["3 problems"])

    def test_growth(self) -> None:
        """Memory that grows by more than the limit is found, if it is not noise."""
        growing = [sample(60.0 * n, rss=100 + n) for n in range(30)]
        self.assertEqual(self.exceeded(growing), ["memory grows by 60.0 MB/h, more than 20"])
        self.assertEqual(self.exceeded(growing, "--max-growth=61"), [])
        noisy = [sample(60.0 * n, rss=100 + n + 60 * (n % 2)) for n in range(30)]
        self.assertEqual(self.exceeded(noisy), [])

    def test_p99(self) -> None:
        """The median of the p99 of all intervals has a limit."""
        samples = [sample(60.0 * n, p99=p99) for n, p99 in enumerate((10.0, 90.0, 2000.0))]
        self.assertEqual(self.exceeded(samples, "--max-p99=80"), ["the median of p99 is 90 ms, more than 80"])
        self.assertEqual(self.exceeded(samples, "--max-p99=100"), [])


class CertificateTests(SynchronousTestCase):
    """The serving certificate."""

    def test_replaced(self) -> None:
        """A replaced certificate differs from the one before, and matches the key beside it."""
        folder = Path(self.mktemp())
        folder.mkdir()
        certificate = script.Certificate(folder)
        before = certificate.certificate.read_text()
        after = certificate.replace()
        self.assertNotEqual(ssl.PEM_cert_to_DER_cert(before), after)
        self.assertEqual(ssl.PEM_cert_to_DER_cert(certificate.certificate.read_text()), after)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate.certificate, certificate.key)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["tls.crt", "tls.key"])
