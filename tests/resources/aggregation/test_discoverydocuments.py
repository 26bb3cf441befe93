"""Tests for L{kubetwist.resources.aggregation.discoverydocuments}."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion, JSONObject
from kubetwist.resources.aggregation.discoverydocuments import (
    is_aggregated,
    read_aggregated,
    read_resource_list,
)
from kubetwist.resources.remotedocuments import BadDocument
from tests.resources.aggregation.discoverytools import LAMPS, everything
from tests.resources.aggregation.remotesfake import AGGREGATED_TYPE


class RemoteDocumentsTests(SynchronousTestCase):
    """Tests for L{kubetwist.resources.aggregation.discoverydocuments}."""

    def test_content_type(self) -> None:
        """An aggregated discovery document is detected by its content type."""
        self.assertTrue(is_aggregated(AGGREGATED_TYPE))
        self.assertTrue(is_aggregated("application/json; as=APIGroupDiscoveryList; v=v2beta1; g=apidiscovery.k8s.io"))
        for other in ("", "application/json", AGGREGATED_TYPE.replace("v2", "v3"), "text/html;" + AGGREGATED_TYPE):
            self.assertFalse(is_aggregated(other), other)

    def test_kept(self) -> None:
        """Known fields are passed on, unknown fields are left out."""
        line = {
            **LAMPS,
            "shortNames": ["la"],
            "categories": ["all"],
            "subresources": [
                {"subresource": "status", "responseKind": None, "verbs": ["get"], "acceptedTypes": [{"kind": "X"}]}
            ],
        }
        found = read_aggregated(json.dumps(everything(("g", "v1"), resources=[{**line, "odd": 1}])).encode())
        none = {"group": "", "version": "", "kind": ""}
        status = {
            "subresource": "status",
            "responseKind": none,
            "acceptedTypes": [none | {"kind": "X"}],
            "verbs": ["get"],
        }
        self.assertEqual(found, {GroupVersion("g", "v1"): [{**line, "subresources": [status]}]})

    def test_subresources_of_plain_documents(self) -> None:
        """Entries with a slash become subresources, also of a resource without an entry, if their scopes agree."""
        lines: list[JSONObject] = [
            {"name": "lamps/status", "namespaced": True, "kind": "Lamp", "verbs": ["get"]},
            {"name": "lamps", "namespaced": True, "kind": "Lamp", "verbs": ["list"]},
            {"name": "chairs/status", "namespaced": False, "verbs": ["get"]},
        ]
        lamps, chairs = read_resource_list(json.dumps({"resources": lines}).encode())
        self.assertEqual((lamps["resource"], lamps["subresources"][0]["subresource"]), ("lamps", "status"))
        self.assertEqual((chairs["resource"], chairs["verbs"], chairs["scope"]), ("chairs", [], "Cluster"))
        lines[0]["namespaced"] = False
        with self.assertRaises(BadDocument):
            read_resource_list(json.dumps({"resources": lines}).encode())

    def test_limits(self) -> None:
        """Documents with too many or too long items are rejected."""
        for resources in (
            [LAMPS] * 5001,
            [{**LAMPS, "verbs": ["get"] * 65}],
            [{**LAMPS, "resource": "a" * 257}],
            [{**LAMPS, "subresources": [{"subresource": "status"}] * 5001}],
        ):
            with self.assertRaises(BadDocument):
                read_aggregated(json.dumps(everything(("g", "v1"), resources=resources)).encode())
        with self.assertRaises(BadDocument):
            read_aggregated(b"{" + b" " * 3_000_000 + b"}")

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "items",
                            "metadata",
                            "name",
                            "versions",
                            "version",
                            "resources",
                            "verbs",
                            "subresources",
                            "kind",
                        ]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=30,
        )
    )
    def test_anything(self, document: Any) -> None:
        """Any document is either read or rejected as a bad document."""
        body = json.dumps(document).encode()
        for read in (read_aggregated, read_resource_list):
            with contextlib.suppress(BadDocument):
                read(body)
