#!/usr/bin/env python3
"""
Print the lower bounds of the run-time requirements as a constraints file, to test that they are true.

Usage: .ci/lowest.py > lowest.txt; pip install -c lowest.txt .
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
#: The extras that users install; the requirements of tests are used in their newest version.
EXTRAS = ("etcd", "kms", "tracing")
_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])? *>= *([0-9.]+)")


def lower_bounds() -> list[str]:
    """Return a line C{name==version} for each requirement; raise L{ValueError} for one without a lower bound."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    requirements = [*project["dependencies"]]
    for extra in EXTRAS:
        requirements += project["optional-dependencies"][extra]
    lines = []
    for requirement in requirements:
        bound = _BOUND.match(requirement)
        if bound is None:
            raise ValueError(f"no lower bound: {requirement}")
        lines.append(f"{bound[1]}=={bound[2]}")
    return lines


if __name__ == "__main__":
    print("\n".join(lower_bounds()))
