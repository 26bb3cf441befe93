"""The subresource C{certificatesigningrequests/approval}."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..generic.updates import UpdateRules

if TYPE_CHECKING:
    from ..generic.store import Store
    from .strategy import CertificateSigningRequestStrategy


def approval_rules(store: Store) -> UpdateRules:
    """Return the update rules of C{certificatesigningrequests/approval}: only approval conditions may change."""
    strategy = cast("CertificateSigningRequestStrategy", store.strategy)
    return UpdateRules("approval", strategy.prepare_for_approval, strategy.validate_approval)
