"""The subresource C{certificatesigningrequests/approval}."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..generic.updates import UpdateRules
from .strategy import CertificateSigningRequestStrategy

if TYPE_CHECKING:
    from ..generic.store import Store


def approval_rules(store: Store) -> UpdateRules:
    """Return the update rules of C{certificatesigningrequests/approval}: only approval conditions may change."""
    strategy = store.strategy
    assert isinstance(strategy, CertificateSigningRequestStrategy)
    return UpdateRules("approval", strategy.prepare_for_approval, strategy.validate_approval)
