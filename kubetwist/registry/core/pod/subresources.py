"""Update rules of C{pods/ephemeralcontainers} and C{pods/resize}."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...generic.updates import UpdateRules

if TYPE_CHECKING:
    from ...generic.store import Store
    from .strategy import PodStrategy


def ephemeral_containers_rules(store: Store) -> UpdateRules:
    """Return the update rules of C{pods/ephemeralcontainers}, which adds containers for debugging."""
    strategy = cast("PodStrategy", store.strategy)
    return UpdateRules(
        "ephemeralcontainers", strategy.prepare_for_ephemeral_update, strategy.validate_ephemeral_update, main=True
    )


def resize_rules(store: Store) -> UpdateRules:
    """Return the update rules of C{pods/resize}, which changes the resources of containers."""
    strategy = cast("PodStrategy", store.strategy)
    return UpdateRules("resize", strategy.prepare_for_resize, strategy.validate_resize, main=True)
