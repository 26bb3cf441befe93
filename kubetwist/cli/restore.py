"""C{twist kubeapi-restore}: create a data directory from a backup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from twisted.application.service import IService
from twisted.internet.threads import deferToThread

from .command import CommandOptions, CommandService
from .flagtypes import BOOLEAN, NATURAL, STRING, Flag

#: Larger than the number of revisions that a server uses after a backup.
DEFAULT_REVISION_BUMP = 1_000_000_000


class Options(CommandOptions):
    """Options of C{twist kubeapi-restore}."""

    command: ClassVar[str] = "kubeapi-restore"
    description: ClassVar[str] = (
        "Create a data directory from a backup of twist kubeapi-backup. No server may use the directory.\n"
        "Existing files are moved to a subdirectory replaced-<time>.\n"
        "\n"
        "The restored state is older than the state that clients have cached. Therefore revisions continue\n"
        "above all revisions since the backup, existing watches fail with 410 Gone, and clients list again."
    )
    required: ClassVar[Sequence[str]] = ("from",)
    flags: ClassVar = (
        Flag("from", STRING, "", "The backup.", "Restore"),
        Flag("data-dir", STRING, "kubetwist-data", "The data directory to create.", "Restore"),
        Flag(
            "replace",
            BOOLEAN,
            False,
            "Replace the store in the directory. Its files are kept in a subdirectory.",
            "Restore",
        ),
        Flag(
            "bump-revision",
            NATURAL,
            DEFAULT_REVISION_BUMP,
            "Number that is added to the revision. It must be larger than the number of revisions since the backup. "
            "With 0, all clients must discard their caches.",
            "Restore",
        ),
    )


async def run(service: CommandService) -> None:
    """Create the data directory, and print its size."""
    from ..server.backups import restore

    options = service.options
    source, target = Path(options["from"]).absolute(), Path(options["data-dir"]).absolute()
    summary = await deferToThread(
        restore, source, target, options["bump-revision"], replace=options["replace"], report=service.print_line
    )
    service.print_line(
        f"restored {source} into {target}: {summary.keys} objects, revisions continue from {summary.revision}"
    )


def makeService(options: Options) -> IService:
    """Return the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, run).install()
