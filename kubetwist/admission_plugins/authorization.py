"""Authorization checks made by admission plugins."""

from __future__ import annotations

from typing import Any

from ..admission.decisions import decide
from ..api.admission import AdmissionAttributes
from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)


async def authorize(attributes: AdmissionAttributes, verb: str, **fields: Any) -> Verdict:
    """
    Return the authorizer's decision for the user of a request; without an authorizer, everything is allowed.

    @param fields: Fields of L{AuthorizerAttributes}.
    """
    authorizer = attributes.context.authorizer
    if authorizer is None:
        return Verdict(Decision.ALLOW)
    return await decide(authorizer, AuthorizerAttributes(attributes.user, verb, **fields))


async def is_authorized_for_signer_name(attributes: AdmissionAttributes, verb: str, signer: str) -> bool:
    """Return whether the user of a request may use a verb on a signer, or on all signers of its domain."""
    for name in (signer, f"{signer.split('/', 1)[0]}/*"):
        verdict = await authorize(
            attributes, verb, group="certificates.k8s.io", version="*", resource="signers", name=name
        )
        if verdict.decision is Decision.ALLOW:
            return True
    return False
