"""The methods of etcd that are called, and the timeouts of calls."""

from __future__ import annotations

from typing import Final

from txaioetcd import KeySet, OpGet

from ._values import FIRST_KEY

PUT: Final = b"/etcdserverpb.KV/Put"
RANGE: Final = b"/etcdserverpb.KV/Range"
DELETE_RANGE: Final = b"/etcdserverpb.KV/DeleteRange"
TXN: Final = b"/etcdserverpb.KV/Txn"
COMPACT: Final = b"/etcdserverpb.KV/Compact"
WATCH: Final = b"/etcdserverpb.Watch/Watch"
LEASE_GRANT: Final = b"/etcdserverpb.Lease/LeaseGrant"
LEASE_REVOKE: Final = b"/etcdserverpb.Lease/LeaseRevoke"
LEASE_KEEP_ALIVE: Final = b"/etcdserverpb.Lease/LeaseKeepAlive"
LEASE_TIME_TO_LIVE: Final = b"/etcdserverpb.Lease/LeaseTimeToLive"
STATUS: Final = b"/etcdserverpb.Maintenance/Status"

#: The timeout per member of a request that can be repeated, in seconds.
READ_TIMEOUT: Final = 3.0
#: The timeout per member of a write that must not be sent twice, in seconds. etcd itself gives up after seven.
WRITE_TIMEOUT: Final = 10.0

#: Requests only the header with the revision of the store. The lookup of a missing key is fast.
REVISION_QUERY: Final = OpGet(KeySet(FIRST_KEY), limit=1, keys_only=True)
