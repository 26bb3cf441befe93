"""
C{/flagz}: the values of all flags, as text.

@see: kubernetes/apiserver, C{pkg/server/flagz}.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...resources.mux import DelegatingMux
from ...resources.routing import RoutedApp
from ..config import ServerConfig
from .zpages import NAME, WARNING, ZPage


def flags_text(flags: Mapping[str, str]) -> str:
    """Return the text of C{/flagz}."""
    lines = "".join(f"{name}={' '.join(value.splitlines())}\n" for name, value in flags.items())
    return f"\n{NAME} flagz\n{WARNING}{lines}"


def install_flagz(mux: DelegatingMux, config: ServerConfig) -> None:
    """Register the page if its feature gate is enabled."""
    if config.features.enabled("ComponentFlagz"):
        flags = config.options.formatted_values
        page = ZPage("Flagz", lambda: flags_text(flags()), lambda: {"flags": flags()})
        mux.handle("/flagz", RoutedApp(page.make_app))
