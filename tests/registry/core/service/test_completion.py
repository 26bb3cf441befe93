"""Tests of defaults of stored objects, which older releases did not set."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import JSONObject
from kubetwist.api.storage import Write
from kubetwist.registry.core.service.store import default_families_on_read
from kubetwist.registry.strategies import strategy_for
from tests.registry.storetools import StoreTestCase


class StoredByOthersTests(StoreTestCase):
    """Tests of reads, lists and watches of such objects."""

    resources = ("services", "jobs", "persistentvolumeclaims")

    def put(self, path: str, api_version: str, kind: str, **content: Any) -> None:
        """Store an object as another server."""
        _, namespace, name = path.rsplit("/", 2)
        meta = {"name": name, "namespace": namespace, "uid": "u", **content.pop("metadata", {})}
        value = orjson.dumps({"kind": kind, "apiVersion": api_version, "metadata": meta, **content})
        self.successResultOf(self.server.backend.commit([Write(f"/registry/{path}", value, None)]))

    def test_defaults(self) -> None:
        """Missing defaults are set, and can be selected."""
        template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
        self.put("jobs/default/old", "batch/v1", "Job", spec={"template": template})
        jobs = self.stores.get("batch", "jobs")
        found = self.stored(jobs, "old")
        self.assertEqual(
            (found["spec"]["suspend"], found["spec"]["podReplacementPolicy"]), (False, "TerminatingOrFailed")
        )
        self.assertEqual(found["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"], "Always")
        record = jobs.cache.get("default/old")
        assert record is not None, "it was stored"
        self.assertEqual(record.labels, {"app": "a"})

    def test_services(self) -> None:
        """Services with a single address get addresses and IP families."""
        self.put("services/specs/default/old", "v1", "Service", spec={"clusterIP": "10.0.0.7", "ports": [{"port": 80}]})
        spec = self.stored(self.store("services"), "old")["spec"]
        self.assertEqual(spec["clusterIPs"], ["10.0.0.7"])
        self.assertEqual((spec["ipFamilies"], spec["ipFamilyPolicy"]), (["IPv4"], "SingleStack"))

    def test_external_names(self) -> None:
        """An ExternalName service has no internal traffic policy."""
        external = {"type": "ExternalName", "externalName": "a.example", "internalTrafficPolicy": "Cluster"}
        self.put("services/specs/default/far", "v1", "Service", spec=external)
        spec = self.stored(self.store("services"), "far")["spec"]
        self.assertNotIn("internalTrafficPolicy", spec)
        self.assertNotIn("ipFamilies", spec)

    def test_data_sources(self) -> None:
        """Claims with one field for data sources get the other one."""
        source = {"kind": "PersistentVolumeClaim", "name": "other"}
        self.put("persistentvolumeclaims/default/old", "v1", "PersistentVolumeClaim", spec={"dataSource": source})
        self.assertEqual(self.stored(self.store("persistentvolumeclaims"), "old")["spec"]["dataSourceRef"], source)


class CompleteTests(SynchronousTestCase):
    """Tests of L{default_on_read}."""

    def test_claim_templates(self) -> None:
        """Claim templates of StatefulSets get kind and apiVersion, which protobuf omits."""
        obj: JSONObject = {"metadata": {}, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "a"}}]}}
        strategy_for("apps", "StatefulSet").default_on_read(obj)
        claim = obj["spec"]["volumeClaimTemplates"][0]
        self.assertEqual((claim["apiVersion"], claim["kind"]), ("v1", "PersistentVolumeClaim"))

    def test_families(self) -> None:
        """A headless service without a selector gets no families, since its endpoints may have any."""
        headless: JSONObject = {"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"]}
        for selector, first, families, policy in (
            ({"a": "b"}, "IPv6", ["IPv6"], "SingleStack"),
            ({}, "IPv6", ["IPv6", "IPv4"], "RequireDualStack"),
            ({}, "IPv4", ["IPv4", "IPv6"], "RequireDualStack"),
        ):
            spec = {**headless, "selector": selector}
            default_families_on_read(spec, first)
            self.assertEqual((spec["ipFamilies"], spec["ipFamilyPolicy"]), (families, policy))
        known = {**headless, "ipFamilies": ["IPv4"]}
        default_families_on_read(known, "IPv6")
        self.assertEqual(known, {**headless, "ipFamilies": ["IPv4"]})
