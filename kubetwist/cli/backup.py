"""C{twist kubeapi-backup}: back up the data directory of a server, which may be running, once or on a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from twisted.application.service import IService
from twisted.internet.defer import CancelledError
from twisted.internet.threads import deferToThread

from ..registry.batch.schedule import check_schedule
from .command import CommandError, CommandOptions, CommandService
from .flagtypes import BOOLEAN, DURATION, MEMORY, NATURAL, STRING, Flag, FlagError, FlagType

_KEPT: Final = ("last", "hourly", "daily", "weekly", "monthly")
#: Flags that need an archive.
_ARCHIVE_FLAGS: Final = (
    "schedule",
    "changes-interval",
    "keep-changes",
    "metrics-file",
    *(f"keep-{name}" for name in _KEPT),
)


def _schedule(text: str) -> str:
    check_schedule(text)
    return text


SCHEDULE: Final = FlagType(_schedule, "cron")


class Options(CommandOptions):
    """Options of C{twist kubeapi-backup}."""

    command: ClassVar[str] = "kubeapi-backup"
    description: ClassVar[str] = (
        "Back up a data directory with an embedded store. Its server may be running. A backup is a new\n"
        "directory with a consistent snapshot, which is checked for corruption before it gets its name.\n"
        "twist kubeapi-restore creates a data directory from it.\n"
        "\n"
        "With --into, backups are collected in an archive, and --keep-last, --keep-daily, ... select those\n"
        "that are kept. With --schedule the command runs until SIGTERM: it takes backups at the scheduled\n"
        "times, and between them archives all changes, so that any revision can be restored.\n"
        "\n"
        "A backup contains all objects, including Secrets, and the keys of the server's CAs and of\n"
        "service accounts: protect it like the data directory. Files of flags outside of the data\n"
        "directory (--encryption-provider-config, --cert-dir, --service-account-key-file, ...) are not\n"
        "included."
    )
    flags: ClassVar = (
        Flag("data-dir", STRING, "kubetwist-data", "The data directory.", "Backup"),
        Flag("to", STRING, "", "The directory of the backup. It must not exist.", "Backup"),
        Flag("into", STRING, "", "The directory of an archive, which gets one more backup.", "Backup"),
        Flag(
            "keys",
            BOOLEAN,
            True,
            "Include the keys and certificates of the data directory. Without them a restored server creates new CAs, "
            "and rejects existing kubeconfigs and service account tokens.",
            "Backup",
        ),
        Flag(
            "rate-limit",
            MEMORY,
            0,
            "Maximum number of bytes copied per second, such as 20Mi; 0 for no limit.",
            "Backup",
        ),
        Flag(
            "verify-only",
            BOOLEAN,
            False,
            "Take no backup: read the one of --to, or everything in the archive of --into, and compare it with its "
            "checksums.",
            "Backup",
        ),
        Flag(
            "schedule",
            SCHEDULE,
            "",
            "Run until SIGTERM, and take backups at these times: five fields of cron with names and ranges, in UTC or "
            'the zone of a prefix "TZ=Europe/Berlin ", or @hourly, @daily, @weekly, @every 6h.',
            "Archive",
        ),
        *(
            Flag(
                f"keep-{name}",
                NATURAL,
                0,
                "Number of newest backups to keep; without any --keep flag, all are kept."
                if name == "last"
                else f"Number of {period} with backups of which the newest backup is kept.",
                "Archive",
            )
            for name, period in zip(_KEPT, ("", "hours", "days", "weeks", "months"), strict=True)
        ),
        Flag(
            "changes-interval",
            DURATION,
            60.0,
            "With --schedule, the interval at which changes are archived. It must be less than the server's "
            "--etcd-compaction-interval. 0 archives no changes.",
            "Archive",
        ),
        Flag("keep-changes", DURATION, 7 * 86400.0, "How long archived changes are kept.", "Archive"),
        Flag(
            "metrics-file",
            STRING,
            "",
            "Write metrics to this file for the textfile collector of node_exporter. Its name must end with .prom.",
            "Archive",
        ),
    )

    def check(self) -> None:
        """Check combinations of flags."""
        if not self["into"]:
            for name in _ARCHIVE_FLAGS:
                if name in self.changed:
                    raise FlagError(f"--{name} needs --into")
            if not self["to"]:
                raise FlagError("--to or --into is required")
        elif self["to"]:
            raise FlagError("--to and --into cannot be set together")
        if self["verify-only"] and self["schedule"]:
            raise FlagError("--verify-only and --schedule cannot be set together")
        if self["metrics-file"] and not self["metrics-file"].endswith(".prom"):
            raise FlagError("--metrics-file must end with .prom")


async def run(service: CommandService) -> None:
    """Take or verify backups, and print the results."""
    options = service.options
    if options["verify-only"]:
        await _verify(service)
    elif options["into"]:
        await _archive(service)
    else:
        await _back_up(service)


async def _back_up(service: CommandService) -> None:
    from ..server.archive.scheduler import LIMITED_STEP_PAGES, RateLimit
    from ..server.backups import back_up

    options = service.options
    source, target = Path(options["data-dir"]).absolute(), Path(options["to"]).absolute()
    limit = RateLimit(options["rate-limit"] or 0, service.cancelled)
    step = LIMITED_STEP_PAGES if options["rate-limit"] else 0
    backup = await deferToThread(back_up, source, target, limit, keys=options["keys"], step_pages=step)
    keys = ", and keys and certificates" if backup.has_keys else ""
    service.print_line(f"backup of {source} in {target}: {backup.keys} objects as of revision {backup.revision}{keys}")


async def _archive(service: CommandService) -> None:
    from ..controllers.workloads.schedules import CronSchedule
    from ..server.archive.archive import Archive
    from ..server.archive.retention import RetentionPolicy
    from ..server.archive.scheduler import ArchiveSettings, BackupScheduler

    options = service.options
    settings = ArchiveSettings(
        source=Path(options["data-dir"]).absolute(),
        policy=RetentionPolicy(**{name: options[f"keep-{name}"] for name in _KEPT}),
        keys=options["keys"],
        changes_interval=options["changes-interval"],
        keep_changes=options["keep-changes"],
        rate_limit=options["rate-limit"] or 0,
        metrics=Path(options["metrics-file"]).absolute() if options["metrics-file"] else None,
    )
    archive = Archive(Path(options["into"]))
    with archive.locked():
        scheduler = BackupScheduler(archive, settings, service.reactor, service.cancelled, service.print_line)
        if not options["schedule"]:
            await scheduler.run_once()
            return
        try:
            await scheduler.run(CronSchedule(options["schedule"], None))
        except CancelledError:
            # A signal is the regular end of a service.
            service.code = 0
            service.print_line("stopped")


async def _verify(service: CommandService) -> None:
    from ..server.archive.archive import Archive
    from ..server.backups import verify_backup

    options = service.options
    if options["to"]:
        target = Path(options["to"]).absolute()
        backup = await deferToThread(verify_backup, target)
        service.print_line(f"{target} is intact: {backup.keys} objects as of revision {backup.revision}")
        return
    archive = Archive(Path(options["into"]))
    verified = await deferToThread(archive.verify, service.print_line)
    service.print_line(f"{verified.backups} backups and {verified.segments} files of changes are intact")
    if verified.problems:
        for problem in verified.problems[:-1]:
            service.print_line(problem)
        raise CommandError(verified.problems[-1])


def makeService(options: Options) -> IService:
    """Return the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, run).install()
