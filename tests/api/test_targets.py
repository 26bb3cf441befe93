"""Tests for L{kubetwist.api.targets}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.targets import clean_path


class PathTests(SynchronousTestCase):
    """Tests for L{clean_path}."""

    def test_dot_segments(self) -> None:
        """Dots cannot lead out of a path; a trailing slash is kept."""
        for path, cleaned in (
            ("", ""), ("/", "/"), ("/a", "/a"), ("/a/", "/a/"), ("//a", "/a"), ("/../../a/..", "/"),
            ("/a/./b//c/", "/a/b/c/"),
        ):  # fmt: skip
            self.assertEqual(clean_path(path), cleaned)

    @given(lists(sampled_from(["", ".", "..", "a", "b.", "...", "é", "%2e"])))
    def test_any(self, parts: list[str]) -> None:
        """A cleaned path has no dot segments, and is not changed again."""
        path = "".join(f"/{part}" for part in parts)
        cleaned = clean_path(path)
        self.assertEqual(clean_path(cleaned), cleaned)
        self.assertFalse({".", ".."} & set(cleaned.split("/")))
        self.assertNotIn("//", cleaned)
        self.assertEqual(
            (cleaned[:1], cleaned[-1:] == "/"), ("/", path.endswith("/") or cleaned == "/") if path else ("", False)
        )
