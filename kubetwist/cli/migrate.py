"""C{twist kubeapi-migrate}: copy all objects of a server to another storage backend."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import asdict, evolve

from twisted.application.service import IService

from ..api.flagvalues import FlagValues
from ..interfaces import IServerReactor
from ..server.files import write_file
from .command import CommandError, CommandOptions, CommandService
from .flagtable import FLAGS
from .flagtypes import BOOLEAN, STRING, Flag, FlagError

if TYPE_CHECKING:
    from ..server.datadir import DataDirectory

#: The flags of C{twist kubeapi} that configure the storage.
STORAGE_FLAGS: Final = (
    "storage-backend",
    "data-dir",
    "etcd-servers",
    "etcd-prefix",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "etcd-transport",
)
#: Number of keys between two lines of progress.
PROGRESS_KEYS: Final = 5000
SECTIONS: Final = {"from": "Source", "to": "Target"}


def _side_flags() -> tuple[Flag, ...]:
    return tuple(
        evolve(flag, name=f"{side}-{flag.name}", section=section)
        for side, section in SECTIONS.items()
        for name in STORAGE_FLAGS
        for flag in FLAGS
        if flag.name == name
    )


class Options(CommandOptions):
    """
    Options of C{twist kubeapi-migrate}.

    @ivar endpoints: The options of C{twist kubeapi} for the source and for the target server.
    """

    command: ClassVar[str] = "kubeapi-migrate"
    description: ClassVar[str] = (
        "Copy all objects of a server to another storage backend: from SQLite to etcd, back, or between any\n"
        "backends of --storage-backend. The flags are the storage flags of twist kubeapi with the prefixes\n"
        "from- and to-:\n"
        "\n"
        "    twist kubeapi-migrate --from-data-dir=kubetwist-data --to-etcd-servers=http://127.0.0.1:2379\n"
        "\n"
        "No server may use the source or the target during the migration. Objects, uids and times to live\n"
        "are kept; revisions are not. Values are copied in their stored form: encrypted values need the same\n"
        "--encryption-provider-config in the target. At the end, all keys of source and target are compared.\n"
        "After an interruption, run the same command again: it continues. No server starts on the target\n"
        "before it is complete."
    )
    flags: ClassVar = (
        *_side_flags(),
        Flag(
            "replace",
            BOOLEAN,
            False,
            "Allow a target that is not empty. Keys that differ are written, and keys that the source does not have "
            "are deleted. An interrupted migration from the same source is continued without this flag.",
            "Migration",
        ),
        Flag(
            "verify-only",
            BOOLEAN,
            False,
            "Write nothing: compare all keys, values and times to live of the source and the target.",
            "Migration",
        ),
        Flag("report", STRING, "", "Write the result to this file, in JSON.", "Migration"),
    )

    def apply(self, parsed: Mapping[str, Any]) -> None:
        """Set the flags, and create the options of each side."""
        from .kubeapi import Options as ServerOptions

        super().apply(parsed)
        self.endpoints: dict[str, FlagValues] = {}
        for side in SECTIONS:
            values = {
                name.removeprefix(f"{side}-"): value for name, value in parsed.items() if name.startswith(f"{side}-")
            }
            if not values:
                raise FlagError(f"no flag selects the {SECTIONS[side].lower()}, such as --{side}-data-dir")
            options = ServerOptions()
            options.changed = frozenset(values)
            options.update(values)
            options.check()
            self.endpoints[side] = options


class StorageEndpoint:
    """
    Storage of the source or the target server.

    @ivar prefix: The prefix of the keys, with a trailing slash.
    """

    def __init__(self, options: FlagValues, reactor: IServerReactor) -> None:
        from ..server.plugins import make_backend

        self._options = options
        self.prefix = options["etcd-prefix"].rstrip("/") + "/"
        self.backend = make_backend(options, reactor)
        self._data: DataDirectory | None = None

    @property
    def description(self) -> str:
        """The store, for messages and for the record of a migration: its place and the prefix."""
        servers = ",".join(self._options["etcd-servers"] or ())
        place = servers or str(Path(self._options["data-dir"]).absolute())
        return f"{place} ({self.prefix})"

    async def open(self, *, source: bool) -> None:
        """
        Lock the data directory, if it contains the store, and open the store.

        @param source: Whether this is the source, which must exist.
        @raise StartError: The directory is in use, or not a data directory.
        @raise StorageError: The store cannot be used.
        """
        if not self.backend.shared:
            from ..server.backups import STORE
            from ..server.datadir import DataDirectory

            path = Path(self._options["data-dir"]).absolute()
            if source and self._options["storage-backend"] == "sqlite" and not (path / STORE).is_file():
                raise CommandError(f"no {STORE} in {path}")
            # Create no keys in it: the target server may need the keys of the source.
            self._data = DataDirectory(path)
            self._data.lock()
            self._data.check_restored()
        await self.backend.open()

    async def close(self) -> None:
        """Close the store, and unlock the data directory."""
        await self.backend.close()
        if self._data is not None:
            self._data.close()


async def run(service: CommandService) -> None:
    """Copy the objects, compare both sides, and print the numbers."""
    from ..storage.migration import Migration, MigrationError

    options = service.options
    assert isinstance(options, Options)
    opened_endpoints: list[StorageEndpoint] = []
    try:
        source, target = (StorageEndpoint(options.endpoints[side], service.reactor) for side in SECTIONS)
        for side in (source, target):
            opened_endpoints.append(side)
            await side.open(source=side is source)
        migration = Migration(
            source.backend,
            target.backend,
            source.prefix,
            target.prefix,
            service.reactor,
            options["replace"],
            _Progress(service.print_line),
            source.description,
        )
        result = await (migration.verify() if options["verify-only"] else migration.run())
    except MigrationError as error:
        raise CommandError(str(error)) from error
    finally:
        for side in reversed(opened_endpoints):
            await side.close()
    if result.resumed:
        service.print_line(f"continued an interrupted migration after {result.resumed}")
    service.print_line(
        f"{result.keys} keys with {result.size} bytes are equal in source and target; {result.written} were written, "
        f"{result.deleted} deleted, {result.expiring} have a time to live"
    )
    if options["report"]:
        path = Path(options["report"]).absolute()
        try:
            write_file(path, json.dumps(asdict(result), indent=2).encode() + b"\n")
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}") from error
    if not options["verify-only"] and result.target_revision <= result.source_revision:
        service.print_line(
            f"revisions restart at {result.target_revision}, below the source's {result.source_revision}: "
            "restart all clients that cache objects"
        )


class _Progress:
    """Prints the progress at most every L{PROGRESS_KEYS} keys."""

    def __init__(self, print_line: Callable[[str], object]) -> None:
        self._print_line = print_line

    def __call__(self, action: str, keys: int) -> None:
        """Print a line."""
        if keys % PROGRESS_KEYS == 0:
            self._print_line(f"{action} {keys} keys")


def makeService(options: Options) -> IService:
    """Return the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, run).install()
