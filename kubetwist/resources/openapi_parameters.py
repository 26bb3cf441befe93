"""
The parameters of the API's operations: names and types as in the reference, descriptions of our own.

The descriptions use the reference's terms where its tests look for them, see kubernetes/kubernetes,
C{test/cmd/discovery.sh}.
"""

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
    ("pretty", "string", "If 'true', the output is indented. Browsers, curl and wget get indented output by default."),
)

LIST_AND_WATCH: Final = _queries(
    (
        "allowWatchBookmarks",
        "boolean",
        "Request watch events of type BOOKMARK, which carry the resourceVersion that the watch has reached. Ignored if "
        "this is not a watch.",
    ),
    (
        "continue",
        "string",
        "The value of metadata.continue of the previous page; all other parameters must be the same as before. An "
        "expired token is answered with 410 and a new token, which continues the list from the latest state. Not "
        "supported by watches.",
    ),
    (
        "fieldSelector",
        "string",
        "A selector that restricts the list of returned objects by their fields. Defaults to everything.",
    ),
    (
        "labelSelector",
        "string",
        "A selector that restricts the list of returned objects by their labels. Defaults to everything.",
    ),
    (
        "limit",
        "integer",
        "The maximum number of objects to return. If there are more, metadata.continue of the response is set and "
        "requests the next page; all pages show the state at one resourceVersion. Not supported by watches.",
    ),
    (
        "resourceVersion",
        "string",
        "For get and list, the resourceVersion that the response must not be older than; for watch, the one that "
        "precedes the first event. Defaults to the most recent state.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion applies to a list: Exact or NotOlderThan.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "If true, a watch begins with an ADDED event for each object, followed by a BOOKMARK event with the annotation "
        "k8s.io/initial-events-end. Requires resourceVersionMatch=NotOlderThan.",
    ),
    ("timeoutSeconds", "integer", "Timeout, in seconds, of the list or watch, whether or not anything was sent."),
    (
        "watch",
        "boolean",
        "Watch for changes to the described resources and return them as a stream of ADDED, MODIFIED and DELETED "
        "events that follow resourceVersion.",
    ),
)

#: Of lists, and of reading custom resources.
RESOURCE_VERSION: Final = next(one for one in LIST_AND_WATCH if one.name == "resourceVersion")

#: Of 1.36 and later.
SHARD_SELECTOR: Final = _queries(
    (
        "shardSelector",
        "string",
        "A selector that restricts the list of returned objects by ranges of their hash. An alpha feature, ignored "
        "unless it is enabled.",
    ),
)

_DRY_RUN: Final = _queries(
    ("dryRun", "string", "If 'All', every stage of the request is processed, but the result is not persisted."),
)
_FIELD_MANAGER: Final = _queries(
    (
        "fieldManager",
        "string",
        "The name of the manager that owns the fields which the request changes: up to 128 printable characters.",
    ),
)
_FIELD_VALIDATION: Final = _queries(
    (
        "fieldValidation",
        "string",
        "How the server handles unknown and duplicate fields: Ignore drops them, Warn drops them and sends a warning "
        "for each, Strict rejects the request.",
    ),
)

CREATE: Final = (*_DRY_RUN, *_FIELD_MANAGER, *_FIELD_VALIDATION)
UPDATE: Final = CREATE
PATCH: Final = (
    *CREATE,
    *_queries(
        (
            "force",
            "boolean",
            "If true, an apply takes over fields that other managers own. Must be unset for other patches.",
        )
    ),
)

DELETE: Final = (
    *_DRY_RUN,
    *_queries(
        (
            "gracePeriodSeconds",
            "integer",
            "Seconds before the object is deleted; zero means immediately. Defaults to the grace period of its kind.",
        ),
        (
            "orphanDependents",
            "boolean",
            "Whether dependent objects are orphaned. Deprecated: use propagationPolicy, which excludes this one.",
        ),
        (
            "propagationPolicy",
            "string",
            "Whether and how dependents are garbage collected: Orphan keeps them, Background deletes them after the "
            "object, Foreground before it.",
        ),
    ),
)

#: Of 1.32 and later.
UNSAFE_DELETE: Final = _queries(
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "If true, an object that cannot be read from storage is deleted without finalizers and preconditions.",
    ),
)

NAMESPACE: Final = Parameter("namespace", "path", "string", "namespace of the object")
PATH: Final = Parameter("path", "path", "string", "path of the request that is proxied")


def name_of(kind: str) -> Parameter:
    """The parameter that names the object."""
    return Parameter("name", "path", "string", f"name of the {kind}")


_STREAMS: Final = (
    ("container", "string", "The container. Defaults to the only container of the pod."),
    ("stderr", "boolean", "Redirect the standard error stream of the container."),
    ("stdin", "boolean", "Redirect the standard input stream of the container."),
    ("stdout", "boolean", "Redirect the standard output stream of the container."),
    ("tty", "boolean", "Allocate a terminal for the process."),
)
_PROXY: Final = _queries(("path", "string", "The path of the request that is proxied."))

#: The options of what is connected to, and of logs.
OPTIONS: Final[Mapping[str, tuple[Parameter, ...]]] = {
    "PodAttachOptions": _queries(*_STREAMS),
    "PodExecOptions": _queries(
        ("command", "string", "The command and its arguments, one per parameter. It is not run in a shell."), *_STREAMS
    ),
    "PodPortForwardOptions": _queries(("ports", "integer", "The ports to forward. Required for WebSockets.")),
    "PodProxyOptions": _PROXY,
    "NodeProxyOptions": _PROXY,
    "ServiceProxyOptions": _PROXY,
    "PodLogOptions": _queries(
        ("container", "string", "The container. Defaults to the only container of the pod."),
        ("follow", "boolean", "Follow the log stream of the container."),
        ("insecureSkipTLSVerifyBackend", "boolean", "Do not verify the serving certificate of the kubelet."),
        ("limitBytes", "integer", "The number of bytes after which the output ends."),
        ("previous", "boolean", "Return the log of the previous, terminated container."),
        ("sinceSeconds", "integer", "Only lines that were written in this number of seconds before now."),
        ("stream", "string", "The stream to return: All, Stdout or Stderr."),
        ("tailLines", "integer", "The number of lines from the end of the log. Excludes a stream other than All."),
        ("timestamps", "boolean", "Precede each line with the time, in RFC 3339, at which it was written."),
    ),
}
