"""Storage flags: the backend, etcd, encryption at rest, the watch cache."""

from __future__ import annotations

from typing import Final

from ..compatflags import partial_flag, restrict_values, unsupported_flag
from ..flagtypes import BOOLEAN, DURATION, NATURAL, POSITIVE, SIZES, STRING, STRINGS, flag_group, one_of

FLAGS: Final = flag_group(
    "Etcd",
    [
        (
            "storage-backend",
            STRING,
            "sqlite",
            "Storage backend: sqlite, memory, etcd3 (with --etcd-servers), or the name of a plugin's backend.",
        ),
        (
            "allow-lost-writes",
            BOOLEAN,
            False,
            "Start although the embedded store has lost acknowledged writes: its write-ahead log is damaged, or it is"
            " older than its high-water mark. Such a store is refused without this flag.",
        ),
        (
            "unsafe-no-fsync",
            BOOLEAN,
            False,
            "For tests: acknowledge writes before they are on the disk. A power failure can lose writes of the embedded"
            " store and damage it; the end of the process cannot.",
        ),
        ("etcd-servers", STRINGS, (), "URLs of etcd members: http://host:port or https://host:port."),
        ("etcd-cafile", STRING, "", "CA bundle for the members' certificates."),
        ("etcd-certfile", STRING, "", "Client certificate for etcd."),
        ("etcd-keyfile", STRING, "", "The key of --etcd-certfile."),
        (
            "etcd-transport",
            one_of("grpc", "gateway"),
            "grpc",
            "Transport to the members: grpc, or gateway, the JSON gateway of etcd over HTTP/1.1, which takes more CPU"
            " time.",
        ),
        ("etcd-healthcheck-timeout", DURATION, 2.0, "Timeout of the etcd check of /livez."),
        ("etcd-readycheck-timeout", DURATION, 2.0, "Timeout of the etcd check of /readyz."),
        (
            "lease-reuse-duration-seconds",
            NATURAL,
            60,
            "Maximum time, in seconds, that an etcd lease is reused for new keys.",
        ),
        ("etcd-prefix", STRING, "/registry", "Prefix of all keys in the store."),
        (
            "encryption-provider-config",
            STRING,
            "",
            "File with an EncryptionConfiguration: encryption at rest of resources, with providers and keys.",
        ),
        (
            "encryption-provider-config-automatic-reload",
            BOOLEAN,
            False,
            "Reload --encryption-provider-config when it changes.",
        ),
        ("etcd-compaction-interval", DURATION, 300.0, "Interval of compaction requests. 0 disables compaction."),
        ("delete-collection-workers", POSITIVE, 1, "Number of workers of a DeleteCollection request."),
        ("watch-cache", BOOLEAN, True, "Serve reads and watches from the watch cache."),
        (
            "watch-cache-sizes",
            SIZES,
            {},
            "Watch cache sizes, in events, as resource[.group]#size; 0 disables the cache of a resource.",
        ),
        ("default-watch-cache-size", NATURAL, 100, "Watch cache size of the other resources."),
        (
            "storage-initialization-timeout",
            DURATION,
            60.0,
            "How long the start waits for the storage to be initialized.",
        ),
        partial_flag(
            "etcd-count-metric-poll-period",
            DURATION,
            60.0,
            "Objects are counted at each scrape of /metrics; 0 disables the count",
        ),
        (
            "etcd-db-metric-poll-interval",
            DURATION,
            30.0,
            "Interval of polling the database sizes of etcd members, for /metrics; 0 disables it.",
        ),
        unsupported_flag(
            "etcd-servers-overrides",
            STRING,
            "all resources are in one store, because one revision orders all changes; move the objects of other"
            " servers to --etcd-servers and omit the flag",
        ),
        (
            "storage-media-type",
            restrict_values(
                STRING,
                "application/json",
                "application/vnd.kubernetes.protobuf",
                reason="objects are stored as application/json or application/vnd.kubernetes.protobuf",
            ),
            "application/json",
            "Media type of stored objects: application/json or, in etcd, application/vnd.kubernetes.protobuf, the"
            " default of kube-apiserver. Both can be read. Custom resources, CustomResourceDefinitions and"
            " APIServices are always stored as JSON.",
        ),
        (
            "enable-garbage-collector",
            restrict_values(
                BOOLEAN, True, reason="finalizers of deletions are always kept, whether or not the collector runs here"
            ),
            True,
            "Keep finalizers of foreground deletion; always true. --controllers selects whether the collector runs"
            " here.",
        ),
    ],
)
