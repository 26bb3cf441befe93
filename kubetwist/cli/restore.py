"""C{twist kubeapi-restore}: create a data directory from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from twisted.application.service import IService
from twisted.internet.threads import deferToThread

from .command import CommandOptions, CommandService
from .flagtypes import BOOLEAN, NATURAL, STRING, Flag

#: More revisions than any server uses between a backup and its loss.
DEFAULT_REVISION_BUMP = 1_000_000_000


class Options(CommandOptions):
    """The options."""

    command: ClassVar[str] = "kubeapi-restore"
    description: ClassVar[str] = (
        "Make a data directory of a backup that twist kubeapi-backup has taken. No server may use the\n"
        "directory. What was in it is kept, in a folder called replaced-<time> in it.\n"
        "\n"
        "A restored server goes back in time. So that no client takes its state for one that came\n"
        "after what the client knows, revisions go on behind all that can have been given since, and\n"
        "existing watches fail with 410 Gone, and clients list again."
    )
    flags: ClassVar = (
        Flag("from", STRING, "", "The backup.", "Restore"),
        Flag("data-dir", STRING, "kubetwist-data", "The data directory to make.", "Restore"),
        Flag("replace", BOOLEAN, False, "Put the store that is in the directory aside.", "Restore"),
        Flag(
            "bump-revision",
            NATURAL,
            DEFAULT_REVISION_BUMP,
            "By how much revisions are set forward: more than were given since the backup was taken. With 0 they are "
            "not, and everything that clients know of the server must be thrown away.",
            "Restore",
        ),
    )

    def check(self) -> None:
        """Check the required flags."""
        self.require_flags("from")


async def _run(service: CommandService) -> None:
    from ..server.backups import restore

    options = service.options
    source, target = Path(options["from"]).absolute(), Path(options["data-dir"]).absolute()
    made = await deferToThread(
        restore, source, target, options["bump-revision"], replace=options["replace"], say=service.print_line
    )
    service.print_line(f"restored {source} into {target}: {made.keys} objects, revisions go on from {made.revision}")


def makeService(options: Options) -> IService:
    """Create the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, _run).install()
