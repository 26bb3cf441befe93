"""Old names of public classes and functions, for one release."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """
    Return a C{__getattr__} for a module that resolves old names, with a L{DeprecationWarning}.

    Modules hide it from type checkers, which would otherwise accept any name of the module.

    @param module: The name of the module: C{__name__}.
    @param names: The new names by the names in kubetwist 0.1. The old ones will be removed in 0.3.
    """

    def find(name: str) -> Any:
        new = names.get(name)
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        text = f"{module}.{name} was renamed {new}; the old name will be removed in kubetwist 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], new)

    return find


def renamed_attributes(owner: str, names: Mapping[str, str]) -> Callable[[Any, str], Any]:
    """
    Return a C{__getattr__} for a class that finds renamed methods by their old names, with a L{DeprecationWarning}.

    A class defines it where type checkers do not see it.

    @param owner: The name of the class in warnings.
    @param names: The new names by the names in kubetwist 0.1. The old ones will be removed in 0.3.
    """

    def find(self: Any, name: str) -> Any:
        new = names.get(name)
        if new is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        text = f"{owner}.{name} was renamed {new}; the old name will be removed in kubetwist 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return find
