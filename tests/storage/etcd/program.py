"""A program that was written for txaioetcd: it uses the library's documented API, and nothing of kubetwist."""

from __future__ import annotations

from typing import Any

from txaioetcd import (
    CompCreated,
    CompModified,
    CompValue,
    CompVersion,
    Database,
    Error,
    Expired,
    Failed,
    KeySet,
    KeyValue,
    OpDel,
    OpGet,
    OpSet,
    Transaction,
)

from twisted.internet.defer import Deferred


def fields(kv: KeyValue | None) -> tuple[Any, ...] | None:
    """Return the documented attributes of a key."""
    return kv and (kv.key, kv.value, kv.version, kv.create_revision, kv.mod_revision)


async def keys(client: Any) -> list[Any]:
    """Set, read and delete keys; return what was found."""
    first = await client.set(b"/k/a", b"one")
    second = await client.set(b"/k/a", b"two", return_previous=True)
    await client.set(b"/k/b", b"\0\xff")
    one = await client.get(b"/k/a")
    every = await client.get(KeySet(b"/k/", prefix=True))
    part = await client.get(b"/k/a", range_end=b"/k/b")
    single = await client.delete(b"/k/a", return_previous=True)
    rest = await client.delete(KeySet(b"/k/", prefix=True))
    nothing = await client.get(b"/k/a")
    return [
        first.header.revision,
        (second.header.revision, fields(second.previous)),
        [[fields(kv) for kv in found.kvs] for found in (one, every, part, nothing)],
        every.header.revision,
        (single.deleted, [fields(kv) for kv in single.previous], single.header.revision),
        (rest.deleted, rest.previous),
    ]


async def transactions(client: Any) -> list[Any]:
    """Submit transactions that succeed, fail and are refused."""
    found: list[Any] = []
    done = await client.submit(
        Transaction(
            compare=[CompVersion(b"/t/a", "==", 0), CompCreated(b"/t/a", "==", 0), CompModified(b"/t/a", "<", 1)],
            success=[
                OpSet(b"/t/a", b"1"),
                OpSet(b"/t/b", b"2", return_previous=True),
                OpGet(KeySet(b"/t/", prefix=True)),
            ],
            failure=[OpDel(b"/t/a")],
        )
    )
    put, other, read = done.responses
    found.append((put.header.revision, other.previous, [fields(kv) for kv in read.kvs], done.header.revision))
    try:
        await client.submit(
            Transaction(
                compare=[CompValue(b"/t/a", "!=", b"1"), CompModified(b"/t/b", ">", 1 << 40)],
                success=[OpSet(b"/t/a", b"2")],
                failure=[
                    OpGet(b"/t/a"),
                    OpDel(KeySet(b"/t/b"), return_previous=True),
                    OpGet(b"/t/none", keys_only=True),
                ],
            )
        )
    except Failed as failed:
        read, deleted, none = failed.responses
        found.append(
            ([fields(kv) for kv in read.kvs], deleted.deleted, [fields(kv) for kv in deleted.previous], none.kvs)
        )
        found.append(failed.header.revision)
    try:
        await client.submit(Transaction(success=[OpSet(b"/t/a", b"1"), OpSet(b"/t/a", b"2")]))
    except Error as error:
        found.append((error.code, error.message))
    async with Database(client).begin(write=True) as txn:
        txn.put(b"/t/d", b"v")
        found.append(await txn.get(b"/t/a"))
    found.append(fields((await client.get(b"/t/d")).kvs[0]))
    return found


async def watches(client: Any) -> list[Any]:
    """Watch keys, until three changes were seen."""
    seen: list[Any] = []
    complete: Deferred[None] = Deferred()

    def on_watch(kv: KeyValue) -> None:
        seen.append((kv.key, kv.value, kv.mod_revision))
        if len(seen) == 4:
            complete.callback(None)
        raise ValueError("errors of callbacks are logged")

    start = (await client.set(b"/other", b"")).header.revision + 1
    await client.set(b"/w/a", b"1")
    watching = client.watch([KeySet(b"/w/", prefix=True)], on_watch, start_revision=start)
    await client.set(b"/w/a", b"2")
    await client.set(b"/other", b"")
    # Short: the library drops events that it receives in pieces.
    await client.set(b"/w/b", b"3" * 1_000)
    await client.delete(b"/w/a")
    await complete
    watching.cancel()
    return [seen, await watching]


async def leases(client: Any) -> list[Any]:
    """Use a lease until it is revoked."""
    lease = await client.lease(600, lease_id=77)
    await client.set(b"/l/a", b"1", lease=lease)
    await client.submit(Transaction(success=[OpSet(b"/l/b", b"2", lease=lease)]))
    held = sorted(await lease.keys())
    remaining = int(await lease.remaining())
    refreshed = await lease.refresh()
    revoked = await lease.revoke()
    left = await client.get(KeySet(b"/l/", prefix=True))
    found = [lease.lease_id, lease.time_to_live, held, 590 < remaining <= 600]
    found += [refreshed.revision, revoked.revision, left.kvs]
    for method in (lease.remaining, lease.keys, lease.refresh, lease.revoke):
        try:
            await method()
        except Expired:
            found.append("expired")
    return found


async def run(client: Any) -> dict[str, Any]:
    """Do everything; return what was found."""
    status = await client.status()
    return {
        "status": {
            "version": status.version,
            "filled": status.db_size > 0,
            "leader": status.leader,
            "terms": (status.raft_term, status.header.raft_term),
            "revision": status.header.revision,
        },
        "keys": await keys(client),
        "transactions": await transactions(client),
        "watches": await watches(client),
        "leases": await leases(client),
    }


async def options(client: Any) -> list[Any]:
    """Read with the options that txaioetcd documents and does not send."""
    revisions = [(await client.set(b"/o/%d" % number, b"%d" % (9 - number))).header.revision for number in range(5)]
    await client.set(b"/o/0", b"late")
    found = []
    for arguments in (
        {"limit": 2},
        {"revision": revisions[2]},
        {"keys_only": True, "limit": 1},
        {"count_only": True},
        {"sort_order": "DESCEND", "sort_target": "KEY", "limit": 2},
        {"sort_order": "ASCEND", "sort_target": "VALUE"},
        {"min_mod_revision": revisions[3], "serializable": True},
        {"min_create_revision": revisions[1], "max_create_revision": revisions[2]},
    ):
        read = await client.get(KeySet(b"/o/", prefix=True), **arguments)
        found.append(([(kv.key, kv.value) for kv in read.kvs], read.count))
    await client.set(b"/p/\xff", b"")
    found.append(len((await client.get(KeySet(b"/p/\xff", prefix=True))).kvs))
    found.append((await client.delete(KeySet(b"/p/\xff", prefix=True))).deleted)
    return found
