"""C{twist kubeapi-restore}: create a data directory from a backup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from twisted.application.service import IService
from twisted.internet.threads import deferToThread

from ..api.times import parse_time
from .command import CommandError, CommandOptions, CommandService
from .flagtypes import BOOLEAN, NATURAL, STRING, Flag, FlagError, FlagType


def _time(text: str) -> str:
    """Return an RFC 3339 time in UTC."""
    try:
        parsed = parse_time(text)
    except ValueError:
        parsed = None
    if parsed is None:
        raise ValueError("it must be a time such as 2026-11-29T08:00:00Z")
    return parsed


TIME = FlagType(_time, "time")

#: Larger than the number of revisions that a server uses after a backup.
DEFAULT_REVISION_BUMP = 1_000_000_000


class Options(CommandOptions):
    """Options of C{twist kubeapi-restore}."""

    command: ClassVar[str] = "kubeapi-restore"
    description: ClassVar[str] = (
        "Create a data directory from a backup of twist kubeapi-backup. No server may use the directory.\n"
        "Existing files are moved to a subdirectory replaced-<time>.\n"
        "\n"
        "If --from is an archive (--into of the backup), its newest state is restored, or with --to-revision\n"
        "exactly one revision, or with --to-time the newest revision that was archived by then.\n"
        "\n"
        "The restored state is older than the state that clients have cached. Therefore revisions continue\n"
        "above all revisions since the backup, existing watches fail with 410 Gone, and clients list again."
    )
    required: ClassVar[Sequence[str]] = ("from",)
    flags: ClassVar = (
        Flag("from", STRING, "", "The backup, or the archive.", "Restore"),
        Flag("data-dir", STRING, "kubetwist-data", "The data directory to create.", "Restore"),
        Flag(
            "replace",
            BOOLEAN,
            False,
            "Replace the store in the directory. Its files are kept in a subdirectory.",
            "Restore",
        ),
        Flag("to-revision", NATURAL, 0, "The revision to restore from an archive; 0 for the newest.", "Restore"),
        Flag(
            "to-time",
            TIME,
            "",
            "The time to restore from an archive, such as 2026-11-29T08:00:00Z. The state is at most as much older as "
            "the --changes-interval of the backup.",
            "Restore",
        ),
        Flag(
            "store-format",
            NATURAL,
            0,
            "The format of the restored store, for an older kubetwist: 1 for 0.1. 0 is the present format.",
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

    def check(self) -> None:
        """Check the required flags."""
        super().check()
        if self["to-revision"] and self["to-time"]:
            raise FlagError("--to-revision and --to-time cannot be set together")


async def run(service: CommandService) -> None:
    """Create the data directory, and print its size."""
    from ..server.archive.archive import Archive
    from ..server.archive.pointintime import RestorePlan
    from ..server.backups import MANIFEST, restore
    from ..storage.sqlite.backup import STORE_FORMAT

    options = service.options
    source, target = Path(options["from"]).absolute(), Path(options["data-dir"]).absolute()
    plan: RestorePlan | None = None
    backup = source
    if (source / MANIFEST).exists():
        if options["to-revision"] or options["to-time"]:
            raise CommandError(f"{source} is a single backup: --to-revision and --to-time need an archive")
    elif await deferToThread(Archive(source).backups):
        plan = await deferToThread(
            Archive(source).plan, revision=options["to-revision"] or None, time=options["to-time"] or None
        )
        backup = plan.backup.path
    summary = await deferToThread(
        restore,
        backup,
        target,
        options["bump-revision"],
        replace=options["replace"],
        report=service.print_line,
        changes=() if plan is None else plan.segments,
        revision=0 if plan is None else plan.revision,
        store_format=options["store-format"] or STORE_FORMAT,
    )
    if plan is not None:
        service.print_line(
            f"state as of revision {plan.revision}: {backup.name} of revision {plan.backup.revision}, and"
            f" {len(plan.segments)} files of changes"
        )
    service.print_line(
        f"restored {source} into {target}: {summary.keys} objects, revisions continue from {summary.revision}"
    )


def makeService(options: Options) -> IService:
    """Return the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, run).install()
