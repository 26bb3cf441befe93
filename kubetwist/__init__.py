"""kubetwist: the Kubernetes API server, in Python, on Twisted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _MovedModules:
    """The last finder of modules: it knows the names that modules of this package had in the previous release."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a module that was renamed, or L{None}."""
        if not fullname.startswith("kubetwist."):
            return None
        from ._moved import find_spec

        return find_spec(fullname)


sys.meta_path.append(_MovedModules())
