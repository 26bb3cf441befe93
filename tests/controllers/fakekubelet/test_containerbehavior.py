"""Tests for L{kubetwist.controllers.fakekubelet.containerbehavior}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.fakeimages import FakeImages
from kubetwist.controllers.fakekubelet.containerbehavior import (
    EXIT_CODE,
    FAIL_PROBES,
    READY,
    RUN_SECONDS,
    STOP_SECONDS,
    ContainerBehavior,
    read_behavior,
)

IMAGES = FakeImages()
CONTAINER = {"name": "c", "image": "app"}
#: All annotations of simulated pods.
ALL = {RUN_SECONDS: "3.5", EXIT_CODE: "1,-1,0", STOP_SECONDS: "7", READY: "false"}


def pod(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a pod with annotations."""
    return {"metadata": {"name": "p", "uid": "u", "annotations": annotations}}


class ReadBehaviorTests(SynchronousTestCase):
    """Tests for L{read_behavior}."""

    def read(self, annotations: dict[str, str] | None = None, *, init: bool = False, **more: Any) -> ContainerBehavior:
        """Return the behavior of a container."""
        return read_behavior(pod(annotations), CONTAINER | more, IMAGES, init=init)

    def test_images(self) -> None:
        """The name of an image sets its exit code, regardless of registry, tag and digest."""
        for image, seconds, code, pulled in (
            ("app", None, 0, True),
            ("example.com:5000/true:1", 1.0, 0, True),
            ("false@sha256:0", 1.0, 1, True),
            ("x/pull-error", None, 0, False),
        ):
            plan = self.read(image=image)
            self.assertEqual((plan.seconds, plan.code(0), plan.pulled), (seconds, code, pulled), image)

    def test_annotations(self) -> None:
        """Annotations override images. Invalid annotations are ignored."""
        plan = self.read(ALL, image="true")
        self.assertEqual((plan.seconds, plan.stop, plan.ready), (3.5, 7.0, False))
        self.assertEqual([plan.code(restarts) for restarts in range(4)], [1, 255, 0, 0])
        odd = self.read({RUN_SECONDS: "-1", EXIT_CODE: "x", STOP_SECONDS: "nan", READY: "x"}, image="false")
        self.assertEqual((odd.seconds, odd.code(0), odd.stop, odd.ready), (1.0, 1, 0.0, True))

    def test_named(self) -> None:
        """An annotation with the name of a container is for this container, and precedes the one for all."""
        own = {f"{name}.c": value for name, value in ALL.items()}
        self.assertEqual(self.read(own), self.read(ALL))
        self.assertEqual(self.read(own, name="other"), ContainerBehavior())
        plan = self.read({RUN_SECONDS: "5", f"{RUN_SECONDS}.c": "9", READY: "false", f"{READY}.c": "true"})
        self.assertEqual((plan.seconds, plan.ready), (9.0, True))

    def test_init(self) -> None:
        """An init container exits at once, and a sidecar never; only annotations with their names are for them."""
        self.assertEqual(self.read(ALL, init=True), ContainerBehavior(0.0))
        self.assertEqual(self.read(ALL, init=True, restartPolicy="Always"), ContainerBehavior(None))
        plan = self.read({f"{RUN_SECONDS}.c": "2", f"{EXIT_CODE}.c": "1"}, init=True)
        self.assertEqual((plan.seconds, plan.codes), (2.0, (1,)))

    def test_probes(self) -> None:
        """Probes fail that an annotation names, of sidecars too."""
        probe = {"failureThreshold": 1}
        for init in (False, True):
            plan = self.read({FAIL_PROBES: "readiness, liveness"}, init=init, readinessProbe=probe, livenessProbe=probe)
            self.assertEqual((plan.probes.unready_after, plan.probes.killed_after), (0.0, 0.0))

    def test_jobs(self) -> None:
        """Containers of pods of jobs exit."""
        of_job = pod()
        of_job["metadata"]["ownerReferences"] = [{"kind": "Job", "controller": True}]
        self.assertEqual(read_behavior(of_job, CONTAINER, IMAGES).seconds, 1.0)
