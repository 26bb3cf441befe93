"""The parameters of the API's operations: names and types as in the reference, what they mean in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen


@frozen
class Parameter:
    """
    A parameter of a URL.

    @ivar place: C{"path"} or C{"query"}.
    @ivar type: Of JSON.
    """

    name: str
    place: str
    type: str
    description: str

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the operation's others."""
        return self.name, self.place


def _queries(*rows: tuple[str, str, str]) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, "query", kind, description) for name, kind, description in rows)


PRETTY: Final = _queries(
    ("pretty", "string", "'true' asks for indented output, which browsers, curl and wget get without asking."),
)

LIST_AND_WATCH: Final = _queries(
    (
        "allowWatchBookmarks",
        "boolean",
        "A watch may send BOOKMARK events, which tell the resourceVersion reached. Without meaning in other requests.",
    ),
    (
        "continue",
        "string",
        "The token from the metadata of the page before, to be sent with otherwise the same query. A token that is too "
        "old is answered by 410 and a new token, with which the list goes on from the newest state. Not for watches.",
    ),
    ("fieldSelector", "string", "Leave only objects whose fields match."),
    ("labelSelector", "string", "Leave only objects whose labels match."),
    (
        "limit",
        "integer",
        "At most so many objects; metadata.continue of the answer then leads to the next page. All pages show the "
        "state of one moment. Not for watches.",
    ),
    ("resourceVersion", "string", "How new the answer must be, or from where a watch begins."),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion is meant in a list: Exact or NotOlderThan.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "Begin a watch with an ADDED event for every object, and tell by a BOOKMARK event with the annotation "
        "k8s.io/initial-events-end that all were sent. Needs resourceVersionMatch=NotOlderThan.",
    ),
    ("timeoutSeconds", "integer", "End the list or watch after so many seconds."),
    ("watch", "boolean", "Send a stream of changes after resourceVersion instead of a list."),
)

#: Of lists, and of reading custom resources.
RESOURCE_VERSION: Final = next(one for one in LIST_AND_WATCH if one.name == "resourceVersion")

#: Of 1.36 and later.
SHARD_SELECTOR: Final = _queries(
    ("shardSelector", "string", "Leave only objects of some hash ranges. An alpha feature; ignored where it is off."),
)

_DRY_RUN: Final = _queries(("dryRun", "string", "'All' does everything but store the result."))
_FIELD_MANAGER: Final = _queries(
    ("fieldManager", "string", "The name under which changed fields are owned: up to 128 printable characters."),
)
_FIELD_VALIDATION: Final = _queries(
    (
        "fieldValidation",
        "string",
        "What is done about unknown and duplicate fields: Ignore drops them, Warn drops them and says so, Strict "
        "refuses the request.",
    ),
)

CREATE: Final = (*_DRY_RUN, *_FIELD_MANAGER, *_FIELD_VALIDATION)
UPDATE: Final = CREATE
PATCH: Final = (
    *CREATE,
    *_queries(("force", "boolean", "An apply takes over fields that others own. Without meaning in other patches.")),
)

DELETE: Final = (
    *_DRY_RUN,
    *_queries(
        (
            "gracePeriodSeconds",
            "integer",
            "Seconds until the object is gone; 0 is at once. Without it, the kind's own.",
        ),
        ("orphanDependents", "boolean", "Keep dependents. Deprecated: see propagationPolicy."),
        (
            "propagationPolicy",
            "string",
            "What becomes of dependents: Orphan keeps them, Background deletes them later, Foreground before it.",
        ),
    ),
)

#: Of 1.32 and later.
UNSAFE_DELETE: Final = _queries(
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Remove an object that can not be read from storage, without finalizers and preconditions.",
    ),
)

NAMESPACE: Final = Parameter("namespace", "path", "string", "The namespace of the object.")
PATH: Final = Parameter("path", "path", "string", "The rest of the path.")


def name_of(kind: str) -> Parameter:
    """The parameter that names the object."""
    return Parameter("name", "path", "string", f"name of the {kind}")


_STREAMS: Final = (
    ("container", "string", "Which container; needed where there are several."),
    ("stderr", "boolean", "Send standard error."),
    ("stdin", "boolean", "Take standard input."),
    ("stdout", "boolean", "Send standard output."),
    ("tty", "boolean", "Give it a terminal."),
)
_PROXY: Final = _queries(("path", "string", "The path of the request that is handed on."))

#: The options of what is connected to, and of logs.
OPTIONS: Final[Mapping[str, tuple[Parameter, ...]]] = {
    "PodAttachOptions": _queries(*_STREAMS),
    "PodExecOptions": _queries(("command", "string", "The command and its arguments, one after the other."), *_STREAMS),
    "PodPortForwardOptions": _queries(("ports", "integer", "The ports to forward.")),
    "PodProxyOptions": _PROXY,
    "NodeProxyOptions": _PROXY,
    "ServiceProxyOptions": _PROXY,
    "PodLogOptions": _queries(
        ("container", "string", "Which container; needed where there are several."),
        ("follow", "boolean", "Go on sending what is written later."),
        ("insecureSkipTLSVerifyBackend", "boolean", "Do not check the kubelet's certificate."),
        ("limitBytes", "integer", "End after so many bytes."),
        ("previous", "boolean", "The log of the container's last run."),
        ("sinceSeconds", "integer", "Only what was written in the last so many seconds."),
        ("stream", "string", "All, Stdout or Stderr."),
        ("tailLines", "integer", "Only so many lines from the end."),
        ("timestamps", "boolean", "Begin each line with the time it was written."),
    ),
}
