"""Tests for L{kubetwist.ui.assets}."""

from __future__ import annotations

import re

from kubetwist.ui.assets import STATIC, SWAGGER_UI, UI, read_assets
from tests.ui.pagecase import FilesTestCase


class AssetTests(FilesTestCase):
    """L{kubetwist.ui.assets}."""

    def test_small(self) -> None:
        """The compressed files of the page are smaller than 300 kB, and the files of Swagger UI than 600 kB."""
        ui, swagger = read_assets(UI), read_assets(SWAGGER_UI)
        self.assertLess(sum(len(one.gzipped) for one in (ui.page, *ui.files.values())), 300_000)
        self.assertLess(sum(len(one.gzipped) for one in (swagger.page, *swagger.files.values())), 600_000)

    def test_self_contained(self) -> None:
        """Our files parse no string as HTML or script, and contain no other host."""
        own = [path for folder in ("", "swagger") for path in (STATIC / folder).iterdir() if path.is_file()]
        self.assertGreater(len(own), 5)
        for path in own:
            text = path.read_text("utf-8")
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
                self.assertNotIn(word, text, path.name)
            self.assertEqual(re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text), [], path.name)
        for page in (STATIC / "index.html", STATIC / "swagger" / "index.html"):
            self.assertNotRegex(page.read_text("utf-8"), r"<script(?![^>]* src=)|<style|style=|\son\w+=")
