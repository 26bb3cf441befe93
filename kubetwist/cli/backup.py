"""C{twist kubeapi-backup}: a backup of the data directory of a server, which may run."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from twisted.application.service import IService
from twisted.internet.defer import CancelledError
from twisted.internet.threads import deferToThread

from .command import CommandOptions, CommandService
from .flagtypes import BOOLEAN, STRING, Flag


class Options(CommandOptions):
    """The options."""

    command: ClassVar[str] = "kubeapi-backup"
    description: ClassVar[str] = (
        "Take a backup of a data directory with an embedded store, while its server runs or not. The\n"
        "backup is a new directory, as of one moment; it is looked through for damage before it is put\n"
        "there under its name. twist kubeapi-restore makes a data directory of it.\n"
        "\n"
        "It holds every object, Secrets included, and the keys of the server's authorities and of\n"
        "service accounts: keep it as you keep those. Files that flags name outside of the data\n"
        "directory (--encryption-provider-config, --cert-dir, --service-account-key-file, ...) are not\n"
        "in it."
    )
    flags: ClassVar = (
        Flag("data-dir", STRING, "kubetwist-data", "The data directory.", "Backup"),
        Flag("to", STRING, "", "The directory to make; it must not be there.", "Backup"),
        Flag(
            "keys",
            BOOLEAN,
            True,
            "Whether the keys and certificates in the data directory are taken along. Without them a restored server "
            "has new authorities: kubeconfigs and service accounts' tokens that were issued before are no good there.",
            "Backup",
        ),
    )

    def check(self) -> None:
        """Check the required flags."""
        self.require_flags("to")


async def _run(service: CommandService) -> None:
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
    """Create the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, _run).install()
