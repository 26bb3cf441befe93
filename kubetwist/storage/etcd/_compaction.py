"""
The election of the server that compacts etcd: the algorithm of kube-apiserver, so that its servers take part.

One key has the last compacted revision. Its version counts the turns: a server that finds its last known version may
take the next turn; another one waits for the next interval.
"""

from __future__ import annotations

from typing import Final

import txaioetcd
from txaioetcd import CompVersion, Failed, OpGet, OpSet

from ..errors import StorageUnavailable
from ._errors import RPCError
from .client import (
    TIMED_OUT,
    EtcdClient,
    WriteOutcomeUnknown,
)

#: The key of kube-apiserver, which does not depend on --etcd-prefix.
COMPACTED_KEY: Final = "compact_rev_key"
_KEY: Final = COMPACTED_KEY.encode("ascii")


class CompactionElection:
    """The state of this server in the election."""

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        #: The version of the key when this server last read it.
        self._known_version = 0

    async def try_claim(self, revision: int) -> bool:
        """
        Take the next turn, unless another server has.

        @param revision: The revision for the compaction.
        @raise StorageUnavailable: etcd does not respond.
        """
        claim = txaioetcd.Transaction(
            compare=[CompVersion(_KEY, "==", self._known_version)],
            success=[OpSet(_KEY, b"%d" % revision)],
            failure=[OpGet(_KEY)],
        )
        try:
            await self._client.submit(claim)
        except Failed as failed:
            found = failed.responses[0].kvs
            self._known_version = found[0].version if found else 0
            return False
        except RPCError as error:
            raise StorageUnavailable(str(error)) from None
        except WriteOutcomeUnknown:
            # If the write was applied, the next attempt finds an unknown version, and waits one interval more.
            raise StorageUnavailable(TIMED_OUT) from None
        self._known_version += 1
        return True


def parse_compact_revision(value: bytes | None) -> int:
    """Return the revision in the key; 0 for none."""
    return int(value) if value is not None and value.isdigit() and len(value) < 20 else 0
