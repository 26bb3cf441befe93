"""Owner references, as every write treats them."""

from __future__ import annotations

from ..api.resource import JSONObject
from .scope import RequestScope


def drop_repeated_owners(scope: RequestScope, meta: JSONObject, *, patched: bool = False) -> None:
    """
    Keep each owner reference once, and warn: the reference promises to refuse repeats some day.

    @param patched: The object is a patch's result, which the reference looks at later than at a body, and says so.
    """
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: list[JSONObject] = []
    repeated = []
    for owner in owners:
        if owner in kept:
            repeated.append(owner.get("uid", ""))
        else:
            kept.append(owner)
    if repeated:
        meta["ownerReferences"] = kept
        scope.warn(
            f".metadata.ownerReferences contains duplicate entries{' after mutating admission happens' if patched else ''}; "
            "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your "
            f"requests; duplicate UID(s) observed: {', '.join(repeated)}"
        )
