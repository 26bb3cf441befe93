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


async def authorize(attributes: AdmissionAttributes, verb: str, **what: Any) -> Verdict:
    """
    Return the authorizer's decision for the user of a request; without an authorizer, everything is allowed.

    @param what: Fields of L{AuthorizerAttributes}.
    """
    authorizer = attributes.context.authorizer
    if authorizer is None:
        return Verdict(Decision.ALLOW)
    question = AuthorizerAttributes(attributes.user, verb, **what)
    return await decide(authorizer, question)


async def is_authorized_for_signer_name(attributes: AdmissionAttributes, verb: str, signer: str) -> bool:
    """Return whether the sender may do something with a signer, or with all signers of its domain."""
    for name in (signer, f"{signer.split('/', 1)[0]}/*"):
        found = await authorize(
            attributes, verb, group="certificates.k8s.io", version="*", resource="signers", name=name
        )
        if found.decision is Decision.ALLOW:
            return True
    return False
