"""Paths of files in the checkout that are not installed: pages, examples and benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

#: Tox runs the tests away from the checkout, and names its pages in the environment.
CHECKOUT = Path(os.environ.get("KUBETWIST_TEST_DOCS") or Path(__file__).parents[1] / "docs").parent
