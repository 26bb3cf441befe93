"""The script F{deploy/ha/run.py}: three servers over a three-member etcd, each of them restarted and killed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from kubetwist.testing.etcd import etcd_skip_reason
from tests.checkout import CHECKOUT

from .commands import console

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")

SCRIPT = CHECKOUT / "deploy" / "ha" / "run.py"


@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not on PATH")
def test_no_loss() -> None:
    """With the command of the page no read fails, no acknowledged write is lost, and the watches are complete."""
    (command,) = [one for one in console("high-availability.md") if one[0] == "python"]
    assert command == ["python", "deploy/ha/run.py", "--steady", "5", "--haproxy"]
    quick = [sys.executable, str(SCRIPT), "--steady=1", *command[4:]]
    done = subprocess.run(quick, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^acknowledged writes: (\d+), lost: 0, failed after retries: 0$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert int(found.group(1)) > 100
    assert re.search(r"^reads: \d+, failed after retries: 0$", done.stdout, re.MULTILINE), done.stdout
    for number in (1, 2, 3):
        assert f"server {number} was killed" in done.stdout
        assert f"member {number} of etcd was killed" in done.stdout


def test_requirements() -> None:
    """Without etcd on PATH the script ends with the reason."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=60, env={"PATH": "/nonexistent"}
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ha: etcd is not installed"), done.stderr
