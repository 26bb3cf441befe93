"""Tests for the examples in the pages for newcomers, unchanged and in the order of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import files_of, run_pytest, write_files


def test_first_operator_test(tmp_path: Path) -> None:
    """The tests of the operator pass, and fail with another operator."""
    pytest.importorskip("kopf")
    page = "first-operator-test.md"
    write_files(tmp_path, page)
    assert set(files_of(page)) == {"greeter.py", "crd.yaml", "conftest.py", "test_greeter.py"}
    assert "4 passed" in run_pytest(tmp_path)
    greeter = tmp_path / "greeter.py"
    greeter.write_text(greeter.read_text().replace("Hello", "Goodbye"))
    output = run_pytest(tmp_path, "-k", "created", failed=True)
    assert "Goodbye, world!" in output


@pytest.mark.parametrize(("page", "tests"), [("from-kind.md", 2), ("from-kmock.md", 1)])
def test_migration(tmp_path: Path, page: str, tests: int) -> None:
    """The example of a page for users of another tool passes."""
    if page == "from-kind.md":
        pytest.importorskip("kubernetes")
    write_files(tmp_path, page)
    assert f"{tests} passed" in run_pytest(tmp_path)
