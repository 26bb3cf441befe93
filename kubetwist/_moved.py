"""
Imports by the names that modules had in kubetwist 0.1, for one release.

F{_moved.txt} has one line for each module that was renamed: its old and its new name, below C{kubetwist}. The import of
an old name returns the new module itself, and emits a L{DeprecationWarning} with the new name. Packages that no longer
exist are imported as modules without content, so that the modules that were in them are found.

This module is imported when an old name is: L{kubetwist._MovedModules} is the last finder on C{sys.meta_path}.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

#: The release without the old names.
REMOVAL: Final = "0.3"


@cache
def read_table() -> dict[str, str]:
    """Return the new names of modules by their old ones, both with C{kubetwist.}."""
    lines = Path(__file__).with_suffix(".txt").read_text().splitlines()
    pairs = (line.split() for line in lines if line and not line.startswith("#"))
    return {f"kubetwist.{old}": f"kubetwist.{new}" for old, new in pairs}


@cache
def read_packages() -> frozenset[str]:
    """Return the names of all packages that renamed modules were in, which may still exist."""
    return frozenset(
        old[:end] for old in read_table() for end, character in enumerate(old) if character == "." and "." in old[:end]
    )


def find_spec(fullname: str) -> ModuleSpec | None:
    """Return the specification of a module or package by its old name, or L{None} if it is no old name."""
    new = read_table().get(fullname)
    if new is not None:
        warnings.warn(
            f"{fullname} was renamed {new}; the old name will be removed in kubetwist {REMOVAL}",
            DeprecationWarning,
            # This function, _MovedModules.find_spec, and the import; frames of the import system do not count.
            stacklevel=3,
        )
    if fullname in read_packages():
        return ModuleSpec(fullname, _OldPackage(new), is_package=True)
    return None if new is None else ModuleSpec(fullname, _OldModule(new))


class _OldModule(Loader):
    """Loads a module under its old name: gives the module itself."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module by its new name."""
        module = import_module(self._new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own specification, which the import system has replaced."""
        module.__spec__ = self._spec


class _OldPackage(Loader):
    """
    Loads a package that no longer exists under this name.

    It is a module of its own: with the path of the new package, modules would be loaded twice.
    """

    def __init__(self, new: str | None) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> None:
        """Have the import system make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Look up the names of the new package, if there is one."""
        new = self._new
        if new is not None:
            module.__dict__["__getattr__"] = lambda name: getattr(import_module(new), name)
