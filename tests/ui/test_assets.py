"""Tests for L{kubetwist.ui.assets}."""

from __future__ import annotations

import re

from kubetwist.ui.assets import STATIC, SWAGGER_UI, UI, read_assets
from tests.ui.pagecase import FilesTestCase


class AssetTests(FilesTestCase):
    """Tests for L{kubetwist.ui.assets}."""

    def test_small(self) -> None:
        """All files of the page together are less than 300 kB, packed; those of Swagger UI are what they are."""
        ui, swagger = read_assets(UI), read_assets(SWAGGER_UI)
        self.assertLess(sum(len(one.gzipped) for one in (ui.page, *ui.files.values())), 300_000)
        self.assertLess(sum(len(one.gzipped) for one in (swagger.page, *swagger.files.values())), 600_000)

    def test_self_contained(self) -> None:
        """No file but those of others takes a string for HTML or a script, or names another host."""
        own = [path for folder in ("", "swagger") for path in (STATIC / folder).iterdir() if path.is_file()]
        self.assertGreater(len(own), 5)
        for path in own:
            text = path.read_text("utf-8")
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
                self.assertNotIn(word, text, path.name)
            self.assertEqual(re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text), [], path.name)
        for page in (STATIC / "index.html", STATIC / "swagger" / "index.html"):
            self.assertNotRegex(page.read_text("utf-8"), r"<script(?![^>]* src=)|<style|style=|\son\w+=")
