"""
Check that the change brings a news fragment, and that the fragments can be read.

Without something to compare with (a fresh repository, a shallow clone, the main branch itself) only the second.
"""

from __future__ import annotations

import subprocess
import sys


def git(*arguments: str) -> str | None:
    """What git prints, or L{None} when it fails."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base() -> str | None:
    """The main branch's commit, when there is one and we stand elsewhere."""
    head = git("rev-parse", "HEAD")
    for name in ("origin/HEAD", "origin/main", "origin/master", "main", "master"):
        commit = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if commit and commit != head and git("merge-base", commit, "HEAD"):
            return name
    return None


def main() -> int:
    """Run towncrier as far as the repository allows."""
    towncrier = [sys.executable, "-m", "towncrier"]
    draft = subprocess.run([*towncrier, "build", "--draft", "--version", "next"]).returncode
    if draft:
        return draft
    compared = base()
    if compared is None:
        print("news: nothing to compare with; the fragments can be read")
        return 0
    return subprocess.run([*towncrier, "check", "--compare-with", compared]).returncode


if __name__ == "__main__":
    sys.exit(main())
