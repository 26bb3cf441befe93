"""Tests of feature gates of CSIDrivers, CSINodes and VolumeAttachments."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import Release
from tests.registry.gatetools import created, gated, update_errors, updated, with_status

GROUP = "storage.k8s.io"
#: Gate, the last release in which it can be set, and its field of the spec of a CSIDriver.
DRIVER_FIELDS: tuple[tuple[str, Release, dict[str, Any]], ...] = (
    ("VolumeLimitScaling", (1, 37), {"preventPodSchedulingIfMissing": True}),
    ("MutableCSINodeAllocatableCount", (1, 35), {"nodeAllocatableUpdatePeriodSeconds": 60}),
    ("SELinuxMountReadWriteOncePod", (1, 35), {"seLinuxMount": True}),
    ("CSIServiceAccountTokenSecrets", (1, 35), {"serviceAccountTokenInSecrets": True}),
)


class DriverTests(SynchronousTestCase):
    """Fields of CSIDrivers in both positions of their gates."""

    def test_fields(self) -> None:
        """A field is kept if its gate is enabled or it is in use, and dropped otherwise."""
        for gate, release, fields in DRIVER_FIELDS:
            on, off = (gated(GROUP, "CSIDriver", release, **{gate: value}) for value in (True, False))
            used, unused = created(on, spec=fields), created(off, spec=fields)
            (name,) = fields
            self.assertEqual(used["spec"][name], fields[name])
            self.assertNotIn(name, unused["spec"])
            self.assertIn(name, updated(off, used, spec=fields)["spec"])
            self.assertNotIn(name, updated(off, unused, spec=fields)["spec"])

    def test_default(self) -> None:
        """SELinux mounts have a default if their gate is enabled."""
        gate = "SELinuxMountReadWriteOncePod"
        for value in (True, False):
            strategy = gated(GROUP, "CSIDriver", (1, 35), **{gate: value})
            self.assertEqual("seLinuxMount" in created(strategy, spec={})["spec"], value)

    def test_warning(self) -> None:
        """There is a warning about tokens in volume attributes if they can be in secrets."""
        driver = {"spec": {"tokenRequests": [{"audience": "a"}]}}
        for release, count in (((1, 34), 0), ((1, 35), 1), ((1, 36), 1)):
            self.assertEqual(len(gated(GROUP, "CSIDriver", release).warnings(driver, None)), count)


class NodeTests(SynchronousTestCase):
    """Changes of CSINodes."""

    def test_counts(self) -> None:
        """The number of volumes changes if the gate is enabled."""
        drivers = [{"name": "d.x", "nodeID": "n", "topologyKeys": None, "allocatable": {"count": 1}}]
        changed = [{**drivers[0], "allocatable": {"count": 2}}]
        for value, count in ((True, 0), (False, 1)):
            strategy = gated(GROUP, "CSINode", (1, 35), MutableCSINodeAllocatableCount=value)
            old = created(strategy, spec={"drivers": drivers})
            self.assertEqual(update_errors(strategy, old, spec={"drivers": drivers}), [])
            errors = update_errors(strategy, old, spec={"drivers": changed})
            self.assertEqual(len(errors), count, errors)


class AttachmentTests(SynchronousTestCase):
    """The status of VolumeAttachments."""

    def test_error_codes(self) -> None:
        """Codes of errors are kept if the gate is enabled or they are in use."""
        status = {"attached": False, "attachError": {"message": "m", "errorCode": 13}}
        on, off = (
            gated(GROUP, "VolumeAttachment", (1, 35), MutableCSINodeAllocatableCount=value) for value in (True, False)
        )
        old = created(on, spec={"source": {}})
        used, unused = with_status(on, old, status), with_status(off, old, status)
        self.assertEqual(used["status"], status)
        self.assertEqual(unused["status"], {"attached": False, "attachError": {"message": "m"}})
        self.assertEqual(with_status(off, used, status)["status"], status)
