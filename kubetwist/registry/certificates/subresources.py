"""What C{certificatesigningrequests/approval} may write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..generic.updates import UpdateRules
from .strategy import CertificateSigningRequestStrategy

if TYPE_CHECKING:
    from ..generic.store import Store


def approval_rules(store: Store) -> UpdateRules:
    """What C{certificatesigningrequests/approval} may write: the conditions that approve and deny."""
    strategy = store.strategy
    assert isinstance(strategy, CertificateSigningRequestStrategy)
    return UpdateRules("approval", strategy.prepare_for_approval, strategy.validate_approval)
