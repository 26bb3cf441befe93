"""Storage flags: the backend, etcd, encryption at rest, the watch cache."""

from __future__ import annotations

from typing import Final

from ..compatflags import restrict_values, unsupported_flag
from ..flagtypes import BOOLEAN, DURATION, NATURAL, POSITIVE, SIZES, STRING, STRINGS, flag_group

FLAGS: Final = flag_group(
    "Etcd",
    [
        (
            "storage-backend",
            STRING,
            "sqlite",
            "What objects are stored in: sqlite, memory, etcd3 (as --etcd-servers says), or one that a plugin brings.",
        ),
        (
            "allow-lost-writes",
            BOOLEAN,
            False,
            "Start although the embedded store has lost acknowledged writes: its write-ahead log is damaged, or it is"
            " older than its high-water mark. Such a store is refused without this flag.",
        ),
        ("etcd-servers", STRINGS, (), "The members of etcd, as http://host:port or https://host:port."),
        ("etcd-cafile", STRING, "", "Authorities that the members' certificates must come from."),
        ("etcd-certfile", STRING, "", "The certificate that members are shown."),
        ("etcd-keyfile", STRING, "", "The key of --etcd-certfile."),
        ("etcd-healthcheck-timeout", DURATION, 2.0, "How long etcd may take to answer when /livez asks."),
        ("etcd-readycheck-timeout", DURATION, 2.0, "How long etcd may take to answer when /readyz asks."),
        ("lease-reuse-duration-seconds", NATURAL, 60, "How long a lease of etcd is used for new keys at most."),
        ("etcd-prefix", STRING, "/registry", "What all keys in the store begin with."),
        (
            "encryption-provider-config",
            STRING,
            "",
            "A file with an EncryptionConfiguration: which resources are encrypted in the store, how, and with which"
            " keys.",
        ),
        (
            "encryption-provider-config-automatic-reload",
            BOOLEAN,
            False,
            "Whether --encryption-provider-config is read again when it changes.",
        ),
        ("etcd-compaction-interval", DURATION, 300.0, "How often old revisions are forgotten. 0 keeps them all."),
        ("delete-collection-workers", POSITIVE, 1, "How many objects one deletecollection deletes at a time."),
        ("watch-cache", BOOLEAN, True, "Whether reads and watches are answered from memory."),
        (
            "watch-cache-sizes",
            SIZES,
            {},
            "How many past events are kept for watches, by resource, as resource[.group]#size; 0 for no cache.",
        ),
        ("default-watch-cache-size", NATURAL, 100, "The same for all others."),
        (
            "storage-initialization-timeout",
            DURATION,
            60.0,
            "How long the start waits for etcd.",
        ),
        (
            "etcd-count-metric-poll-period",
            DURATION,
            60.0,
            "Objects are counted whenever /metrics is asked for, however often that is; 0 for not at all.",
        ),
        (
            "etcd-db-metric-poll-interval",
            DURATION,
            30.0,
            "How often the members of etcd are asked how large their databases are, for /metrics; 0 for never.",
        ),
        unsupported_flag(
            "etcd-servers-overrides",
            STRING,
            "all resources are in one store, as one revision orders all changes; leave it out, and move what is"
            " elsewhere to --etcd-servers before",
        ),
        (
            "storage-media-type",
            restrict_values(
                STRING,
                "application/json",
                "application/vnd.kubernetes.protobuf",
                why="objects are stored as application/json or application/vnd.kubernetes.protobuf",
            ),
            "application/json",
            "As what objects are stored: application/json, or in etcd application/vnd.kubernetes.protobuf as"
            " kube-apiserver does by default. Both are read in any case. Custom resources, their definitions and"
            " APIServices are always JSON.",
        ),
        (
            "enable-garbage-collector",
            restrict_values(
                BOOLEAN, True, why="finalizers of deletions are always kept, whether or not the collector runs here"
            ),
            True,
            "Whether deletions may wait for dependents: they may. --controllers says whether the collector runs here.",
        ),
    ],
)
