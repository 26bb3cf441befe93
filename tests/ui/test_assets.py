"""Tests for L{kubetwist.ui.assets}."""

from __future__ import annotations

import re

from kubetwist.ui.assets import STATIC, SWAGGER_UI, UI, read_assets
from tests.ui.pagecase import FilesTestCase


def _imported(entry: str, *, later: bool = False) -> set[str]:
    """
    Return the modules that a module imports, and those that they import.

    @param later: Whether C{import()} counts.
    """
    pattern = r"""(?:\bfrom|^import%s) ?\(?"(\.[^"]+)"\)?""" % (r"|\bimport" if later else "")
    found: set[str] = set()
    left = [STATIC / entry]
    while left:
        module = left.pop()
        text = re.sub(r"/\*.*?\*/", "", module.read_text("utf-8"), flags=re.DOTALL)
        for name in re.findall(pattern, text, re.MULTILINE):
            path = (module.parent / name).resolve()
            if (key := path.relative_to(STATIC.resolve()).as_posix()) not in found:
                found.add(key)
                left.append(path)
    return found


class AssetTests(FilesTestCase):
    """L{kubetwist.ui.assets}."""

    def test_small(self) -> None:
        """
        What the page loads first is smaller than 60 kB, compressed; all its files are smaller than 700 kB, and the
        files of Swagger UI than 600 kB.
        """
        ui, swagger = read_assets(UI), read_assets(SWAGGER_UI)
        first = {"app.js", "style.css", "icon.svg", *_imported("app.js")}
        self.assertLess(len(ui.page.gzipped) + sum(len(ui.files[name].gzipped) for name in first), 60_000)
        self.assertLess(sum(len(one.gzipped) for one in (ui.page, *ui.files.values())), 700_000)
        self.assertLess(sum(len(one.gzipped) for one in (swagger.page, *swagger.files.values())), 600_000)

    def test_preloaded(self) -> None:
        """The page preloads the modules that its script imports, so that they are not found one after the other."""
        preloaded = re.findall(
            r'<link rel="modulepreload" href="/ui/{{assets}}/(.*?)">', (STATIC / "index.html").read_text()
        )
        self.assertEqual(sorted(preloaded), sorted(_imported("app.js")))

    def test_complete(self) -> None:
        """Each module that another one imports is among the files of its page, also those that are imported later."""
        for files, entry in ((UI, "app.js"), (SWAGGER_UI, "swagger/swagger.js")):
            modules = _imported(entry, later=True)
            self.assertGreater(len(modules), 3)
            self.assertEqual(modules - set(read_assets(files).files), set())

    def test_self_contained(self) -> None:
        """Our files parse no string as HTML or script, and contain no other host."""
        own = [path for path in STATIC.rglob("*.*") if "vendor" not in path.parts]
        self.assertGreater(len(own), 25)
        for path in own:
            text = path.read_text("utf-8")
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
                self.assertNotIn(word, text, path.name)
            self.assertEqual(re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text), [], path.name)
        for page in (STATIC / "index.html", STATIC / "swagger" / "index.html"):
            self.assertNotRegex(page.read_text("utf-8"), r"<script(?![^>]* src=)|<style|style=|\son\w+=")
