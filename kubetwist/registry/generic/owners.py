"""Owner references, as every write treats them."""

from __future__ import annotations

import orjson

from ...api.requestscope import RequestScope
from ...api.resource import JSONObject


def drop_repeated_owners(scope: RequestScope, meta: JSONObject, *, patched: bool = False) -> None:
    """
    Keep each owner reference once, and warn: the reference promises to refuse repeats some day.

    @param patched: The object is a patch's result, which the reference looks at later than at a body, and says so.
    """
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    # By their JSON, as comparing each with each would let a large body hold up the reactor.
    kept: dict[bytes, JSONObject] = {}
    repeated = []
    for owner in owners:
        if kept.setdefault(orjson.dumps(owner, option=orjson.OPT_SORT_KEYS), owner) is not owner:
            repeated.append(owner.get("uid", ""))
    if repeated:
        meta["ownerReferences"] = list(kept.values())
        when = " after mutating admission happens" if patched else ""
        scope.warn(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            f"{', '.join(repeated)}"
        )
