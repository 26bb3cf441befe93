"""Files in the checkout that are not installed: pages, examples, benchmarks and the scripts of CI."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

#: Tox runs the tests away from the checkout, and names its pages in the environment.
CHECKOUT = Path(os.environ.get("KUBETWIST_TEST_DOCS") or Path(__file__).parents[1] / "docs").parent


def load_script(path: str) -> ModuleType:
    """
    Import a script, which is not part of a package.

    Scripts of one folder import each other by name, so the folder is on the path of modules during the import.

    @param path: The path in the checkout.
    """
    file = CHECKOUT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module
