"""Tests for L{kubetwist.controllers.csr.csrcleaner}."""

from __future__ import annotations

from kubetwist.api.times import use_clock
from kubetwist.controllers.csr.csrcleaner import DECIDED, PENDING, CSRCleaner
from kubetwist.controllers.csr.requests import CLIENT, GROUP
from tests.controllers.csr.requestcase import NAME, Signing, SigningRequestTestCase


class CSRCleanerTests(SigningRequestTestCase):
    """Deletion of old CSRs."""

    def setUp(self) -> None:
        """Create objects with the time of the clock."""
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)

    def create_all(self) -> None:
        """Create a CSR in each state."""
        for name in ("approved", "short", "denied", "failed", "pending", "foreign"):
            signer = "example.com/mine" if name == "foreign" else CLIENT
            usage = "server auth" if name == "failed" else "client auth"
            spec = {"expirationSeconds": 600} if name == "short" else {}
            self.request(name, signer, usages=(usage,), **spec)
        for name in ("approved", "short", "failed", "foreign"):
            self.decide(name, "Approved")
        self.decide("denied", "Denied")

    def test_ends(self) -> None:
        """
        Decided CSRs are deleted after an hour, or when their certificate expires.

        Pending CSRs are kept for a day, and approved ones without a certificate longer.
        """
        self.start(Signing, CSRCleaner)
        self.create_all()
        self.settle(1)
        self.assertEqual(len(self.names(NAME, "", GROUP)), 6)
        self.settle(601)
        self.assertEqual(self.names(NAME, "", GROUP), ["approved", "denied", "failed", "foreign", "pending"])
        self.settle(DECIDED)
        self.assertEqual(self.names(NAME, "", GROUP), ["foreign", "pending"])
        self.settle(PENDING)
        self.assertEqual(self.names(NAME, "", GROUP), ["foreign"])

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, all expired CSRs are deleted in the end."""
        self.start(Signing, CSRCleaner)
        self.create_all()
        self.settle(1)
        self.restart(CSRCleaner)
        self.backend.fails = lambda number: number % 3 == 0
        self.settle(DECIDED + PENDING)
        self.assertEqual(self.names(NAME, "", GROUP), ["foreign"])
