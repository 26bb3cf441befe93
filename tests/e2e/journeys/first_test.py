"""Write the test of the README into a project, install what it imports, and run pytest."""

from __future__ import annotations

import re

from tests.checkout import CHECKOUT

from .steps import Steps, run_alone


def example() -> str:
    """Return the test in the README."""
    blocks = re.findall(r"```python\n(.*?)```", (CHECKOUT / "README.md").read_text("utf-8"), re.DOTALL)
    (text,) = [block for block in blocks if "def test_" in block]
    assert isinstance(text, str)
    return text


def walk(steps: Steps) -> None:
    """Run the test in the environment."""
    (steps.folder / "test_first.py").write_text(example())
    with steps.step("test: pip install pytest kubernetes"):
        steps.pip("install", "--quiet", "pytest", "kubernetes")
    with steps.step("test: first pytest"):
        output = steps.run(steps.python, "-m", "pytest", "-q", "test_first.py")
    assert "1 passed" in output, output
    with steps.step("test: second pytest"):
        steps.run(steps.python, "-m", "pytest", "-q", "test_first.py")


def main() -> None:
    """Run the journey in a new environment."""
    run_alone(walk)


if __name__ == "__main__":
    main()
