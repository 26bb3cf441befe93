"""C{twist kubeapi-backup}: back up the data directory of a server, which may be running."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from twisted.application.service import IService
from twisted.internet.defer import CancelledError
from twisted.internet.threads import deferToThread

from .command import CommandOptions, CommandService
from .flagtypes import BOOLEAN, STRING, Flag


class Options(CommandOptions):
    """Options of C{twist kubeapi-backup}."""

    command: ClassVar[str] = "kubeapi-backup"
    description: ClassVar[str] = (
        "Back up a data directory with an embedded store. Its server may be running. The backup is a new\n"
        "directory with a consistent snapshot, which is checked for corruption before it gets its name.\n"
        "twist kubeapi-restore creates a data directory from it.\n"
        "\n"
        "The backup contains all objects, including Secrets, and the keys of the server's CAs and of\n"
        "service accounts: protect it like the data directory. Files of flags outside of the data\n"
        "directory (--encryption-provider-config, --cert-dir, --service-account-key-file, ...) are not\n"
        "included."
    )
    required: ClassVar[Sequence[str]] = ("to",)
    flags: ClassVar = (
        Flag("data-dir", STRING, "kubetwist-data", "The data directory.", "Backup"),
        Flag("to", STRING, "", "The directory of the backup. It must not exist.", "Backup"),
        Flag(
            "keys",
            BOOLEAN,
            True,
            "Include the keys and certificates of the data directory. Without them a restored server creates new CAs, "
            "and rejects existing kubeconfigs and service account tokens.",
            "Backup",
        ),
    )


async def run(service: CommandService) -> None:
    """Write the backup, and print its size."""
    from ..server.backups import back_up

    options = service.options
    source, target = Path(options["data-dir"]).absolute(), Path(options["to"]).absolute()

    def progress(done: int, total: int) -> None:
        if service.cancelled.is_set():
            raise CancelledError

    backup = await deferToThread(back_up, source, target, progress, keys=options["keys"])
    keys = ", and keys and certificates" if backup.has_keys else ""
    service.print_line(f"backup of {source} in {target}: {backup.keys} objects as of revision {backup.revision}{keys}")


def makeService(options: Options) -> IService:
    """Return the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, run).install()
