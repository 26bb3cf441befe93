"""Tests of L{kubetwist.registry.core.persistentvolumeclaim.validation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import change_problems, copy, made, problems, warnings_for


class NewClaimTests(SynchronousTestCase):
    """Tests of new claims."""

    def test_claim(self) -> None:
        """A claim must request storage, and is immutable."""
        self.assertEqual(
            problems("", "PersistentVolumeClaim", spec={}),
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        )
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        larger = {**spec, "resources": {"requests": {"storage": "2Gi"}}}
        found = change_problems("", "PersistentVolumeClaim", {"spec": spec}, {"spec": larger})
        self.assertEqual(len(found), 1)
        self.assertIn("spec is immutable after creation", found[0])

    def test_given_to_claim(self) -> None:
        """Allocated resources of a claim are storage or of another domain, with a known status."""
        many = {"storage": "1Gi", "example.com/iops": "5", "cpu": "1", "a b": "1"}
        words = dict.fromkeys(many, "NodeResizePending")
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"spec": spec, "status": {"allocatedResources": many, "allocatedResourceStatuses": words}}
        found = [str(cause) for cause in strategy_for("", "PersistentVolumeClaim").validate_status_update(claim, claim)]
        for path, (bad, odd) in zip(
            ("allocatedResourceStatuses", "allocatedResources"), (found[:2], found[2:]), strict=True
        ):
            self.assertTrue(bad.startswith(f'status.{path}: Invalid value: "a b": name part must consist of'), bad)
            self.assertEqual(odd, f'status.{path}: Unsupported value: "cpu": supported values: "storage"')
        status = {"allocatedResources": {"storage": "-1"}, "allocatedResourceStatuses": {"storage": "Odd"}}
        strategy, obj = strategy_for("", "PersistentVolumeClaim"), {**claim, "status": status}
        first, second = (str(cause) for cause in strategy.validate_status_update(obj, obj))
        self.assertTrue(first.startswith('status.allocatedResourceStatuses: Unsupported value: "storage": '), first)
        self.assertIn("must be a valid resource quantity", second)


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class ClaimTests(SynchronousTestCase):
    """Tests of PersistentVolumeClaims."""

    def change(self, old: dict[str, Any], new: dict[str, Any], status: dict[str, Any] | None = None) -> list[str]:
        """Return the validation errors of an update of a claim with a status, of metadata and spec."""
        objects = []
        for parts in (old, new):
            metadata = {"name": "x", "namespace": "ns", "annotations": parts.get("annotations", {})}
            spec = {**CLAIM, **{name: part for name, part in parts.items() if name != "annotations"}}
            obj = made("", "PersistentVolumeClaim", metadata=metadata, spec=spec)
            obj["status"] = status or {"phase": "Pending"}
            objects.append(obj)
        causes = strategy_for("", "PersistentVolumeClaim").validate_update(objects[1], objects[0])
        return [str(cause).partition("\n")[0] for cause in causes]

    def test_other_namespaces(self) -> None:
        """Data sources in other namespaces are dropped, unless the stored claim has them."""
        strategy = strategy_for("", "PersistentVolumeClaim")
        reference = {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "other"}
        self.assertNotIn("dataSourceRef", made("", "PersistentVolumeClaim", spec={"dataSourceRef": reference})["spec"])
        old = made("", "PersistentVolumeClaim", spec=CLAIM)
        old["spec"]["dataSourceRef"] = reference
        new = copy(old)
        strategy.prepare_for_update(new, copy(old))
        self.assertEqual(new["spec"]["dataSourceRef"], reference)
        new["spec"]["dataSource"] = {"kind": "PersistentVolumeClaim", "name": "a"}
        new["spec"]["dataSourceRef"]["namespace"] = "A"
        found = [str(cause) for cause in strategy.validate(new)]
        self.assertTrue(found[0].startswith('spec.dataSourceRef.namespace: Invalid value: "A": a lowercase'), found)
        self.assertEqual(
            found[1:], ["spec: Invalid value: {}: may not be specified when dataSourceRef.namespace is specified"]
        )

    def test_unsupported_data_source(self) -> None:
        """Unsupported kinds in the older field for data sources are dropped without an error."""
        snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
        for source, kept in ((snapshot, True), ({**snapshot, "kind": "X"}, False), ({"kind": "Secret"}, False)):
            spec = made("", "PersistentVolumeClaim", spec={**CLAIM, "dataSource": source})["spec"]
            self.assertEqual(("dataSource" in spec, "dataSourceRef" in spec), (kept, kept), source)
        named = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "c", "namespace": ""}
        claim = made("", "PersistentVolumeClaim", spec={**CLAIM, "dataSourceRef": named})
        self.assertNotIn("namespace", claim["spec"]["dataSource"])
        both = {"dataSource": {"kind": "Secret"}, "dataSourceRef": {"kind": "Secret"}}
        self.assertIn("dataSource", made("", "PersistentVolumeClaim", spec={**CLAIM, **both})["spec"])

    def test_stored_invalid_values(self) -> None:
        """Invalid values that the stored claim has are accepted."""
        selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}
        source = {"apiGroup": "A B", "kind": "K", "name": "n"}
        old = {"selector": selector, "dataSource": source, "dataSourceRef": source}
        self.assertEqual(self.change(old, old), [])
        self.assertEqual(len(self.change({"dataSourceRef": {**source, "apiGroup": "a"}}, old)), 2)

    def test_order(self) -> None:
        """Errors of the new claim precede those of immutable fields."""
        found = self.change({}, {"accessModes": []})
        self.assertEqual(found[0], "spec.accessModes: Required value: at least 1 access mode is required")
        self.assertTrue(found[1].startswith("spec: Forbidden: spec is immutable"), found)

    def test_fractions(self) -> None:
        """Fractional bytes in requests and limits cause warnings."""
        amounts = {"requests": {"storage": "1500m"}, "limits": {"storage": "2500m", "cpu": "100m"}}
        found = warnings_for("", "PersistentVolumeClaim", spec={**CLAIM, "resources": amounts})
        self.assertEqual(
            found,
            [
                f'spec.resources.{part}[storage]: fractional byte value "{amount}" is invalid, must be an integer'
                for part, amount in (("requests", "1500m"), ("limits", "2500m"))
            ],
        )

    def test_modes(self) -> None:
        """An invalid access mode does not conflict with ReadWriteOncePod."""
        found = problems("", "PersistentVolumeClaim", spec={**CLAIM, "accessModes": ["ReadWriteOncePod", "x"]})
        self.assertEqual([text.partition(": ")[2][:17] for text in found], ["Unsupported value"])

    def test_thousandths(self) -> None:
        """Quantities of all kinds are rounded up to thousandths."""
        amounts = {"storage": "100u"}
        claim = made("", "PersistentVolumeClaim", spec={**CLAIM, "resources": {"requests": dict(amounts)}})
        self.assertEqual(claim["spec"]["resources"]["requests"], {"storage": "1m"})
        volume = made("", "PersistentVolume", spec={"capacity": dict(amounts)})
        self.assertEqual(volume["spec"]["capacity"], {"storage": "1m"})
        quota = made("", "ResourceQuota", spec={"hard": dict(amounts)})
        self.assertEqual(quota["spec"]["hard"], {"storage": "1m"})
        ranges = made("", "LimitRange", spec={"limits": [{"type": "Pod", "min": dict(amounts)}]})
        self.assertEqual(ranges["spec"]["limits"][0]["min"], {"storage": "1m"})
        node = made("", "Node", status={"capacity": dict(amounts)})
        self.assertEqual(node["status"]["allocatable"], {"storage": "1m"})
        pod = made(
            "", "Pod", spec={"containers": [], "overhead": {"cpu": "1n"}, "resources": {"limits": {"cpu": "1n"}}}
        )
        self.assertEqual((pod["spec"]["overhead"], pod["spec"]["resources"]["limits"]), ({"cpu": "1m"},) * 2)

    def test_class(self) -> None:
        """The class annotation is immutable but can move to the field; a missing class can be set."""
        slow = {"annotations": {ANNOTATION: "slow"}}
        self.assertEqual(self.change({}, {"storageClassName": "fast"}), [])
        self.assertEqual(self.change(slow, {"storageClassName": "slow"}), [])
        self.assertEqual(self.change(slow, {**slow, "storageClassName": "slow"}), [])
        stays = f'metadata.annotations.{ANNOTATION}: Invalid value: "": field is immutable'
        self.assertEqual(self.change(slow, {}), [stays])
        found = self.change(slow, {**slow, "storageClassName": "fast"})
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("spec: Forbidden: spec is immutable after creation"), found)

    def test_attributes(self) -> None:
        """The attributes class of a bound claim can change, and be removed unless the volume has one."""
        gold: dict[str, Any] = {"volumeAttributesClassName": "gold"}
        bound = {"phase": "Bound", "currentVolumeAttributesClassName": "gold"}
        self.assertEqual(self.change(gold, {"volumeAttributesClassName": "tin"}, bound), [])
        self.assertEqual(self.change(gold, {}, {"phase": "Bound"}), [])
        self.assertEqual(len(self.change(gold, {})), 1)
        where, when = "spec.volumeAttributesClassName: Forbidden: update to", "status.currentVolumeAttributesClassName"
        for new, what in (({}, "nil"), ({"volumeAttributesClassName": ""}, "empty string")):
            self.assertEqual(
                self.change(gold, new, bound), [f"{where} {what} is forbidden when {when} is not nil"], what
            )

    def test_status(self) -> None:
        """Allocated resources may be fractions; an unknown status is an error for any resource."""
        given = {"example.com/iops": "1500m"}
        claim = {"spec": CLAIM, "status": {"allocatedResources": given, "allocatedResourceStatuses": {"cpu": "Odd"}}}
        found = [str(cause) for cause in strategy_for("", "PersistentVolumeClaim").validate_status_update(claim, claim)]
        self.assertEqual([one.partition(":")[0] for one in found], ["status.allocatedResourceStatuses"] * 2)

    def test_warnings(self) -> None:
        """The class annotation causes a warning."""
        metadata = {"name": "x", "namespace": "ns", "annotations": {ANNOTATION: "slow"}}
        self.assertEqual(
            warnings_for("", "PersistentVolumeClaim", metadata=metadata, spec=CLAIM),
            [f'metadata.annotations[{ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead'],
        )
