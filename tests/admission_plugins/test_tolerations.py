"""Tests for L{kubetwist.admission_plugins.tolerations}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubetwist.admission_plugins.tolerations import implies, merge_tolerations
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.classes import ClassTestCase
from tests.admission_plugins.fakes import PluginTestCase


class MergeTests(ClassTestCase):
    """Tests for L{kubetwist.admission_plugins.tolerations}."""

    def test_tolerations(self) -> None:
        """Tolerations that another one implies are omitted."""
        narrow = {"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"}
        wide = {"key": "a", "operator": "Exists"}
        self.assertEqual(merge_tolerations([narrow], [wide]), [wide])
        other = {"key": "b", "operator": "Exists"}
        self.assertEqual(merge_tolerations([other, narrow], [narrow]), [other, narrow])


class AnyMergeTests(PluginTestCase):
    """Tests for L{merge_tolerations}."""

    @given(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "key": st.sampled_from(("a", "b")),
                    "operator": st.sampled_from(("Exists", "Equal")),
                    "effect": st.sampled_from(("NoSchedule", "NoExecute")),
                    "value": st.sampled_from(("1", "2")),
                    "tolerationSeconds": st.integers(0, 2),
                },
            ),
            max_size=5,
        )
    )
    def test_merge(self, tolerations: list[JSONObject]) -> None:
        """The merged tolerations tolerate the same taints, and merging again changes nothing."""
        merged = merge_tolerations(tolerations, [])
        for one in tolerations:
            self.assertTrue(any(implies(wide, one) for wide in merged))
        self.assertEqual(merge_tolerations(merged, merged), merged)
