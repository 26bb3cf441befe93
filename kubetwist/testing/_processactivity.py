"""
The last requests of a server in another process, from its audit log: see L{kubetwist.testing._activity}.

The audit log is written in the order of the responses. A marked request, whose event is awaited, ensures that the
events of earlier requests are in the file.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..api.times import seconds_since_epoch
from ._activity import RecentActivity, ServedRequest
from ._objectwatch import USER_AGENT, DeadlineError, ObjectClient, RequestRefusedError
from .expectations import WRITE_VERBS

if TYPE_CHECKING:
    from ..api.jsontypes import JSONObject
    from ._connection import Connection

#: Number of requests in a report, and bytes of the log that are read for them.
MAX_REQUESTS: Final = 50
_MAX_BYTES: Final = 1024 * 1024
#: Seconds for the marked request and its event.
_TIMEOUT: Final = 2.0
_POLL: Final = 0.01
_POLICY: Final = (
    "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived, ResponseStarted],"
    " rules: [{level: Metadata}]}\n"
)
#: Flags with which a test configures auditing itself.
_AUDIT: Final = "--audit-"


def configures_audit(arguments: Sequence[str]) -> bool:
    """Return whether flags configure auditing."""
    return any(one.startswith(_AUDIT) for one in arguments)


class AuditLog:
    """The audit log of one server."""

    def __init__(self, folder: Path) -> None:
        """
        @param folder: An existing directory for its files.
        """
        self._path = folder / "audit.log"
        policy = folder / "audit-policy.yaml"
        policy.write_text(_POLICY)
        #: The flags of the server.
        self.flags = (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self._path}",
            "--audit-log-maxsize=20",
            "--audit-log-maxbackup=1",
        )

    def since(self, moment: float, connection: Connection) -> RecentActivity:
        """
        Return the last requests since a moment; the lines of the log are not included.

        @param moment: A value of L{time.perf_counter}.
        @param connection: The connection of the admin.
        """
        self._flush(connection)
        start = time.time() - time.perf_counter() + moment
        requests: list[ServedRequest] = []
        namespaces: dict[str, None] = {}
        for event in self._events():
            served = _served(event)
            if served is None or served.time < start:
                continue
            requests.append(served)
            namespace = (event.get("objectRef") or {}).get("namespace")
            if namespace and served.verb in WRITE_VERBS:
                # Moved to the end, so that the oldest one is first.
                namespaces.pop(namespace, None)
                namespaces[namespace] = None
        return RecentActivity(tuple(requests[-MAX_REQUESTS:]), (), tuple(namespaces))

    def _flush(self, connection: Connection) -> None:
        """Wait until the events of earlier requests are in the file, if the server responds."""
        token = secrets.token_hex(8)
        deadline = time.monotonic() + _TIMEOUT
        client = ObjectClient(connection, deadline)
        try:
            client.get(f"/version?report={token}")
        except (DeadlineError, RequestRefusedError):
            return
        finally:
            client.disconnect()
        while token.encode() not in self._tail() and time.monotonic() < deadline:
            time.sleep(_POLL)

    def _tail(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - _MAX_BYTES))
                return file.read()
        except OSError:
            return b""

    def _events(self) -> Iterator[JSONObject]:
        for line in self._tail().splitlines():
            try:
                event: Any = json.loads(line)
            except ValueError:
                # The beginning or the end of an event.
                continue
            if isinstance(event, dict):
                yield event


def _served(event: JSONObject) -> ServedRequest | None:
    """Return the request of an audit event; L{None} for requests of reports, and for an invalid event."""
    from ..logs.redaction import redact_uri

    if event.get("userAgent") == USER_AGENT:
        return None
    try:
        ended = seconds_since_epoch(event["stageTimestamp"])
        started = seconds_since_epoch(event["requestReceivedTimestamp"])
        user = event["user"].get("username") or ""
        impersonated = (event.get("impersonatedUser") or {}).get("username")
        opaque = (event.get("objectRef") or {}).get("subresource") == "proxy"
        uri = redact_uri(event["requestURI"].encode(), opaque=opaque)
        code = int((event.get("responseStatus") or {}).get("code") or 0)
        name = f"{impersonated} (by {user})" if impersonated else user
        return ServedRequest(ended, name, event["verb"], uri, code, ended - started)
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
