#!/usr/bin/env python3
"""
Check the prose of the documentation with proselint and the spelling of the whole project with codespell.

proselint reads Markdown as plain text. Code, headings and tables of figures are therefore blanked out first; lines and
columns stay the same.

Usage: .ci/prose.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "newsfragments/*.md", ".github/**/*.md")
#: What is not prose: fenced code, code in a line, headings, targets of links, HTML comments.
_CODE = re.compile(r"^ *```.*?^ *``` *$|`[^`\n]*`|^#.*$|\]\([^)]*\)|<!--.*?-->", re.DOTALL | re.MULTILINE)
#: The delimiter row of a table, and a cell without letters.
_TABLE = re.compile(r"^\|[-| :]+\|$|(?<=\|)[^|A-Za-z\n]*(?=\|)", re.MULTILINE)


def blank(match: re.Match[str]) -> str:
    """Return the matched text with all characters but line ends replaced by a character that no rule matches."""
    return re.sub(r"[^\n]", "\N{MIDDLE DOT}", match.group())


def prose(markdown: str) -> str:
    """Return a page without what is not prose."""
    return _TABLE.sub(blank, _CODE.sub(blank, markdown))


def main() -> int:
    """Run both programs; return 1 if one of them found something."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for pattern in PAGES:
            for page in ROOT.glob(pattern):
                copy = folder / page.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(prose(page.read_text()))
        # proselint reads the configuration of the current directory; it ignores `--config` (0.16).
        shutil.copy(ROOT / ".proselintrc.json", folder)
        command = ["proselint", "check", "."]
        checked = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE)
    print(checked.stdout.replace(f"{folder.resolve()}/", ""), end="")
    spelled = subprocess.run(["codespell"], cwd=ROOT)
    found = bool(checked.returncode or spelled.returncode)
    print("prose: problems above" if found else "prose: no problems")
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
