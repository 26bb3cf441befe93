"""
Write the manual pages into F{man/}, from the help texts of commands and the tables of flags.

Run it in an environment with kubetwist, after changes of flags. With C{--check}, only compare: the exit code is 1 if a
page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kubetwist.cli.manpages import manual_pages

FOLDER = Path(__file__).parents[1] / "man"


def main(arguments: list[str]) -> int:
    """Write or compare the pages."""
    stale = 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in manual_pages().items():
        path = FOLDER / name
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        if "--check" in arguments:
            print(f"manpages: man/{name} is out of date: run .ci/manpages.py")
            stale = 1
        else:
            path.write_text(text, "utf-8")
            print(f"manpages: wrote man/{name}")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
