"""
Checks of etcd: members, versions, health, alarms, database sizes, the leader, and lag.

@see: etcd-io/etcd, C{api/etcdserverpb/rpc.proto}: C{StatusResponse}; pull requests 11613 and 13914 of etcd-io/etcd, and
    114064 of kubernetes/kubernetes, for versions with defects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from time import time
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import frozen

from ...api.flagvalues import FlagValues
from .findings import Finding, error, note, ok, warning
from .http import RequestFailed, make_context, request

#: The oldest version that the server supports.
_OLDEST: Final = (3, 4, 0)
#: Versions with defects: the first and the last one, and the defect.
_DEFECTS: Final = (
    ((3, 4, 0), (3, 4, 3), "a defragmentation can corrupt the database"),
    ((3, 4, 20), (3, 4, 21), "members can become inconsistent if users are enabled and a member is added"),
    ((3, 5, 0), (3, 5, 2), "members can become inconsistent if one is killed under load"),
    ((3, 5, 0), (3, 5, 5), "members can become inconsistent if one ends during a defragmentation"),
    ((3, 5, 5), (3, 5, 5), "members can become inconsistent if users are enabled and a member is added"),
)
#: Quota of the database if etcd does not report it, and the share at which an operator should act.
_DEFAULT_QUOTA: Final = 2 << 30
_FULL_SHARE: Final = 0.8
#: Entries of raft that a member may be behind, and share of the database without data.
_MOST_LAG: Final = 1000
_FRAGMENTED: Final = 0.5
_LEAST_FRAGMENTED_SIZE: Final = 256 << 20


@frozen
class MemberFacts:
    """
    What one member has answered.

    @ivar url: Its URL, without a password.
    @ivar problem: Why it did not answer; C{""} if it did.
    @ivar version: Its version; C{""} if it is not known.
    @ivar healthy: The result of C{/health}; L{None} if it is not known.
    @ivar reason: Why it is not healthy.
    @ivar status: The response of the maintenance service; L{None} without the gateway.
    @ivar skew: Seconds by which this clock is ahead of the one of the member; L{None} if it is not known.
    """

    url: str
    problem: str = ""
    version: str = ""
    healthy: bool | None = None
    reason: str = ""
    status: dict[str, Any] | None = None
    skew: float | None = None


def without_password(url: str) -> str:
    """Return a URL without its user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def read_members(options: FlagValues) -> list[MemberFacts]:
    """Read the facts of all members of C{--etcd-servers}."""
    return [read_member(url, options) for url in options["etcd-servers"]]


def read_member(url: str, options: FlagValues) -> MemberFacts:
    """Read the facts of one member."""
    shown = without_password(url)
    try:
        context = None
        if url.startswith("https:"):
            context = make_context(options["etcd-cafile"], options["etcd-certfile"], options["etcd-keyfile"])
        version = request(url, "/version", context)
        skew = None if version.date is None else time() - version.date
        health = request(url, "/health", context)
        status = request(url, "/v3/maintenance/status", context, b"{}", {"Content-Type": "application/json"})
    except OSError as failure:
        return MemberFacts(shown, problem=f"the certificates of etcd cannot be used: {failure.strerror or failure}")
    except RequestFailed as failure:
        return MemberFacts(shown, problem=str(failure))
    number, healthy = version.json().get("etcdserver", ""), health.json()
    return MemberFacts(
        shown,
        version=number if isinstance(number, str) else "",
        healthy=healthy.get("health") in ("true", True) if healthy else None,
        reason=str(healthy.get("reason", ""))[:200],
        status=status.json() if status.status == 200 else None,
        skew=skew,
    )


def judge_members(members: Sequence[MemberFacts]) -> Iterator[Finding]:
    """Judge all members."""
    answered = [one for one in members if not one.problem]
    for one in members:
        if one.problem:
            yield error(
                "etcd/reachable",
                f"{one.url} does not answer: {one.problem}",
                "check the address, the firewall, the certificates and the log of the member",
            )
    for one in answered:
        yield from _member(one)
    if len(answered) <= len(members) // 2:
        yield error("etcd/quorum", f"{len(answered)} of {len(members)} members answer", "restore the majority")
    elif len(members) == 1:
        yield note("etcd/quorum", "there is one member", "three members continue when one of them fails")
    elif len(members) % 2 == 0:
        yield note("etcd/quorum", f"{len(members)} members are named", "an odd number tolerates as many failures")
    else:
        yield ok("etcd/quorum", f"{len(answered)} of {len(members)} members answer")
    yield from _together(answered)


def _member(member: MemberFacts) -> Iterator[Finding]:
    yield from _version(member)
    if member.healthy is False:
        yield error(
            "etcd/health",
            f"{member.url} is not healthy{': ' + member.reason if member.reason else ''}",
            "look at the log of the member, and at its disk",
        )
    if not member.url.startswith("https:"):
        yield warning(
            "etcd/tls",
            f"the connection to {member.url} is not encrypted",
            "use https URLs with --etcd-cafile, --etcd-certfile and --etcd-keyfile",
        )
    if member.status is None:
        yield note(
            "etcd/status",
            f"{member.url} has no JSON gateway: its alarms and sizes are not known",
            "run etcdctl endpoint status and etcdctl alarm list",
        )
    else:
        yield from _status(member, member.status)


def _version(member: MemberFacts) -> Iterator[Finding]:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", member.version)
    if match is None:
        yield warning("etcd/version", f"{member.url} does not report its version", "check that it is etcd 3.4 or later")
        return
    version = (int(match[1]), int(match[2]), int(match[3]))
    if version < _OLDEST:
        yield error("etcd/version", f"{member.url} is etcd {member.version}", "use etcd 3.5 or later")
        return
    defects = [defect for first, last, defect in _DEFECTS if first <= version <= last]
    if defects:
        yield error(
            "etcd/version",
            f"{member.url} is etcd {member.version}: {'; '.join(defects)}",
            "upgrade to the newest patch release of 3.5 or later",
        )
    elif version[:2] == (3, 4):
        yield warning("etcd/version", f"{member.url} is etcd {member.version}", "upgrade: 3.4 gets no fixes")
    else:
        yield ok("etcd/version", f"{member.url} is etcd {member.version}")


def _status(member: MemberFacts, status: dict[str, Any]) -> Iterator[Finding]:
    problems = " ".join(map(str, status.get("errors") or ()))
    if "NOSPACE" in problems:
        yield error(
            "etcd/alarms",
            f"{member.url} has the alarm NOSPACE: etcd refuses writes",
            "compact and defragment (etcdctl compact, etcdctl defrag) or raise the quota, then etcdctl alarm disarm",
        )
    if "CORRUPT" in problems:
        yield error(
            "etcd/alarms",
            f"{member.url} has the alarm CORRUPT",
            "stop the servers, find the damaged member, and replace it by an empty one, or restore a snapshot",
        )
    if _number(status, "leader") == 0:
        yield error("etcd/leader", f"{member.url} has no leader", "restore the majority of the members")
    size, quota = _number(status, "dbSize"), _number(status, "dbSizeQuota") or _DEFAULT_QUOTA
    message = f"the database of {member.url} has {size >> 20} MiB, and its quota is {quota >> 20} MiB"
    if "dbSizeQuota" not in status:
        message += " unless --quota-backend-bytes is set"
    if size > quota * _FULL_SHARE:
        yield warning("etcd/size", message, "defragment, delete objects, or raise the quota of etcd")
    else:
        yield ok("etcd/size", message)
    used = _number(status, "dbSizeInUse")
    if size > _LEAST_FRAGMENTED_SIZE and used and used < size * _FRAGMENTED:
        yield note(
            "etcd/fragmentation",
            f"{used >> 20} of {size >> 20} MiB of the database of {member.url} are in use",
            "etcdctl defrag, one member at a time",
        )
    lag = _number(status, "raftIndex") - _number(status, "raftAppliedIndex")
    if lag > _MOST_LAG:
        yield warning(
            "etcd/lag", f"{member.url} has {lag} entries that are not applied", "look at the disk and the load of it"
        )
    if status.get("isLearner"):
        yield warning("etcd/learner", f"{member.url} is a learner, which refuses reads", "promote it, or omit it")


def _together(members: Sequence[MemberFacts]) -> Iterator[Finding]:
    """Judge what must be the same for all members."""
    clusters = {_header(one, "cluster_id") for one in members if one.status is not None} - {""}
    if len(clusters) > 1:
        yield error("etcd/cluster", "the members belong to different clusters", "correct --etcd-servers")
    versions = {one.version for one in members} - {""}
    if len(versions) > 1:
        yield warning(
            "etcd/versions", f"the members have different versions: {', '.join(sorted(versions))}", "finish the upgrade"
        )
    indexes = [_number(one.status, "raftIndex") for one in members if one.status is not None]
    if indexes and max(indexes) - min(indexes) > _MOST_LAG:
        yield warning(
            "etcd/lag",
            f"a member is {max(indexes) - min(indexes)} entries behind another one",
            "look at its disk and its network",
        )


def _header(member: MemberFacts, name: str) -> str:
    header = (member.status or {}).get("header")
    return str(header.get(name, "")) if isinstance(header, dict) else ""


def _number(status: dict[str, Any], name: str) -> int:
    """Return a 64-bit number, which the gateway sends as a string; 0 if it is missing."""
    value = str(status.get(name, "0"))
    return int(value) if value.isascii() and value.isdigit() else 0


def skews_of(members: Sequence[MemberFacts]) -> dict[str, float]:
    """Return the differences of clocks in seconds, by member."""
    return {one.url: one.skew for one in members if one.skew is not None}
