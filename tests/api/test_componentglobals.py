"""Tests of L{kubetwist.api.componentglobals}."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.componentglobals import merge_components, read_settings, read_version, split_components
from kubetwist.api.go.parsebool import format_bool

PAIRS = st.lists(st.tuples(st.sampled_from(["A", "B", "C"]), st.booleans()), max_size=6)


class SettingsTests(SynchronousTestCase):
    """Settings of feature gates."""

    def test_components(self) -> None:
        """Settings are collected by component; blanks are removed, and empty parts ignored."""
        self.assertEqual(split_components("A=true,,B = false"), {"": ("A=true", "B = false")})
        self.assertEqual(
            split_components("kube:A=true, wardle : B=x:y,kube:C=1"),
            {"kube": ("A=true", "C=1"), "wardle": ("B=x:y",)},
        )
        self.assertEqual(split_components(""), {})

    def test_settings(self) -> None:
        """Values are Go's booleans; the component kube can be omitted."""
        self.assertEqual(read_settings({"": ("A=true", "B = F", "")}), {"A": True, "B": False})
        self.assertEqual(read_settings({"kube": ("A=1",)}), {"A": True})

    def test_errors(self) -> None:
        """Errors have the texts of kube-apiserver."""
        for text, message in (
            ("A", "missing bool value for A"),
            ("A=", 'invalid value of A=, err: strconv.ParseBool: parsing "": invalid syntax'),
            ("A=yes", 'invalid value of A=yes, err: strconv.ParseBool: parsing "yes": invalid syntax'),
            ("wardle:A=true", "component not registered: wardle"),
            (
                "kube:A=true,B=true",
                "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
            ),
        ):
            error = self.assertRaises(ValueError, read_settings, split_components(text))
            self.assertEqual(str(error), message)

    @given(st.lists(PAIRS, max_size=4), st.sampled_from(["", "kube:"]))
    def test_merged(self, flags: list[list[tuple[str, bool]]], prefix: str) -> None:
        """A repeated flag has the same settings as one with all of its parts; the last setting of a gate wins."""
        texts = [",".join(f"{prefix}{name}={format_bool(value)}" for name, value in pairs) for pairs in flags]
        merged = reduce(merge_components, map(split_components, texts), {})
        self.assertEqual(merged, split_components(",".join(texts)))
        self.assertEqual(read_settings(merged), dict(pair for pairs in flags for pair in pairs))


class VersionsTests(SynchronousTestCase):
    """Versions of components."""

    def test_versions(self) -> None:
        """A version belongs to kube, with or without its name."""
        for values in (("1.35",), ("kube=1.35",), (" kube = v1.35 ",), ("1.35.0",)):
            self.assertEqual(read_version(values), (1, 35))
        self.assertIsNone(read_version(()))

    def test_errors(self) -> None:
        """Errors have the texts of kube-apiserver."""
        for values, message in (
            (("x",), 'could not parse "x" as version'),
            (("1",), 'illegal version string "1"'),
            (("01.35",), 'illegal zero-prefixed version component "01" in "01.35"'),
            (("1.35.2",), "patch version not allowed, got: kube=1.35.2"),
            (("1.35", "kube=1.34"), "duplicate version flag, kube=1.35 and kube=1.34"),
            (("wardle=1.2",), "component not registered: wardle"),
        ):
            error = self.assertRaises(ValueError, read_version, values)
            self.assertEqual(str(error), message)
