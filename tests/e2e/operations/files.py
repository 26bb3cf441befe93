"""The files in deploy/, which operators use."""

from __future__ import annotations

import os
from pathlib import Path

#: The top folder of the project: tests run in a copy of tests/, away from it.
PROJECT = Path(os.environ.get("KUBETWIST_TEST_DOCS") or Path(__file__).parents[3] / "docs").parent
DEPLOY = PROJECT / "deploy"
