"""Deduplication of owner references in writes."""

from __future__ import annotations

import orjson

from ...api.requestscope import RequestScope
from ...api.resource import JSONObject


def drop_repeated_owners(scope: RequestScope, meta: JSONObject, *, patched: bool = False) -> None:
    """
    Remove duplicate owner references, with a warning, as kube-apiserver does.

    @param meta: The metadata of the object; modified.
    @param patched: Whether the references are checked after mutating admission, which changes the text of the warning.
    """
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    # By their JSON: comparing each pair of a large body would block the reactor.
    unique: dict[bytes, JSONObject] = {}
    repeated = []
    for owner in owners:
        if unique.setdefault(orjson.dumps(owner, option=orjson.OPT_SORT_KEYS), owner) is not owner:
            repeated.append(owner.get("uid", ""))
    if repeated:
        meta["ownerReferences"] = list(unique.values())
        when = " after mutating admission happens" if patched else ""
        scope.warn(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            f"{', '.join(repeated)}"
        )
