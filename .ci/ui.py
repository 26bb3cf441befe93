"""
Check the types of the page's modules with TypeScript, and run the tests of those without a browser.

node and npm are on PATH; tox installs them. The compiler comes from npm, in the version below.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TYPESCRIPT = "typescript@5.9.3"


def main(folder: Path) -> int:
    """Run both checks; return 1 if one fails. The compiler is installed in C{folder}."""
    install = ["npm", "install", "--prefix", str(folder), "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([*install, TYPESCRIPT], check=True)
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    checks = (
        ["node", str(compiler), "--project", str(ROOT / "kubetwist" / "ui" / "tsconfig.json")],
        ["node", "--test", *map(str, sorted((ROOT / "tests" / "ui" / "modules").glob("*.test.js")))],
    )
    return max(int(subprocess.run(check, check=False).returncode != 0) for check in checks)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
