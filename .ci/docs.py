"""
What mkdocs is to do besides turning pages into HTML: the tables of F{docs/flags.md} come from the flags themselves, the
table of F{docs/feature-gates.md} comes from the data of gates, and the finished site is looked through for what a
browser would ask other hosts for.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

MARK: Final = "<!-- flags: {} -->"
GATES_MARK: Final = "<!-- feature gates -->"

#: Elements whose attributes are fetched without anybody's click.
_FETCHED: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the tables where the pages of flags and of feature gates have marks."""
    if page.file.src_uri == "feature-gates.md":
        if GATES_MARK not in markdown:
            raise SystemExit(f"docs/feature-gates.md has no {GATES_MARK}")
        return markdown.replace(GATES_MARK, gates_table(Path(page.file.src_dir) / "featuregates.csv"))
    if page.file.src_uri != "flags.md":
        return markdown
    for command, flags in _commands().items():
        mark = MARK.format(command)
        if mark not in markdown:
            raise SystemExit(f"docs/flags.md has no {mark}")
        markdown = markdown.replace(mark, flag_tables(flags))
    for name, command in _click_commands().items():
        mark = MARK.format(name)
        if mark not in markdown:
            raise SystemExit(f"docs/flags.md has no {mark}")
        markdown = markdown.replace(mark, option_table(name, command))
    return markdown


def on_post_build(config: Any, **_: Any) -> None:
    """Fail for a flag that is not shown, and for a page that asks other hosts."""
    site = Path(config["site_dir"])
    shown = set(re.findall(r"<code>--([a-z0-9-]+)</code>", (site / "flags.html").read_text("utf-8")))
    missing = {flag.name for flags in _commands().values() for flag in flags} - shown
    if missing:
        raise SystemExit(f"flags.html does not have --{', --'.join(sorted(missing))}")
    from kubetwist.api.featuregates import FeatureGates

    gates = (site / "feature-gates.html").read_text("utf-8")
    for minor in range(31, 38):
        for name in dict(FeatureGates((1, minor)).existing()):
            if f"<code>{name}</code>" not in gates and name not in ("AllAlpha", "AllBeta"):
                raise SystemExit(f"feature-gates.html does not have {name} of 1.{minor}")
    for path in sorted(site.rglob("*.html")):
        elsewhere = fetched_elsewhere(path.read_text("utf-8"))
        if elsewhere:
            raise SystemExit(f"{path.relative_to(site)} asks other hosts: {', '.join(elsewhere)}")
    for path in sorted(site.rglob("*.css")):
        elsewhere = re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^)\"' ;]+)", path.read_text("utf-8"))
        if elsewhere:
            raise SystemExit(f"{path.relative_to(site)} asks other hosts: {', '.join(elsewhere)}")


def flag_tables(flags: Iterable[Any]) -> str:
    """A heading and a table for each section of C{flags}."""
    from kubetwist.cli.flagtypes import format_default

    sections: dict[str, list[str]] = {}
    for flag in flags:
        metavar = f" {_cell(flag.flag_type.metavar)}" if flag.flag_type.metavar else ""
        default = f"`{format_default(flag)}`" if format_default(flag) else ""
        row = f"| `--{flag.name}`{metavar} | {default} | {_cell(flag.help)} |"
        sections.setdefault(flag.section, []).append(row)
    parts = []
    for section, rows in sections.items():
        parts += [f"### {section}", "", "| flag | default | |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def option_table(name: str, command: Any) -> str:
    """
    Return the usage and the table of a command of click.

    @param name: The words of the command line.
    """
    import click

    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    rows = [
        f"| `{', '.join(option.opts)}`{'' if option.is_flag else f' {_cell(option.make_metavar(context))}'} |"
        f" {f'`{option.default}`' if isinstance(option.default, str) and option.default else ''} |"
        f" {_cell(option.help or '')} |"
        for option in command.params
        if isinstance(option, click.Option)
    ]
    return "\n".join([f"`{usage}`", "", "| flag | default | |", "|---|---|---|", *rows])


def gates_table(notes: Path) -> str:
    """
    Return the table of the feature gates of 1.31 and later.

    @param notes: The file with the readers and the effects of gates.
    """
    from kubetwist.api.featuregates import known_gates

    rows = ["| gate | stages | read by | effect |", "|---|---|---|---|"]
    with notes.open(newline="") as table:
        for note in csv.DictReader(table):
            states = known_gates()[note["gate"]]
            stages = "<br>".join(_stage(state) for state in states)
            rows.append(f"| `{note['gate']}` | {stages} | {note['readers']} | {_cell(note['effect'])} |")
    return "\n".join(rows)


def _stage(state: Any) -> str:
    from kubetwist.api.featuregates import format_release

    value = "on" if state.default else "off"
    if state.stage == "UNGATED":
        return f"before: {value}"
    since = format_release(state.since)
    if state.stage == "REMOVED":
        return f"removed {since} ({value})"
    stage = state.stage if state.stage == "GA" else state.stage.lower()
    locked = ", locked" if state.locked else ""
    minimum = f", with --min-compatibility-version={format_release(state.minimum)}" if state.minimum > (0, 0) else ""
    return f"{stage} {since} ({value}{locked}{minimum})"


def fetched_elsewhere(html: str) -> list[str]:
    """Which addresses of other hosts a browser would fetch with this page."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            attributes = dict(attrs)
            # A canonical address and the like are told, not fetched.
            told = tag == "link" and attributes.get("rel") in ("canonical", "next", "prev", "alternate")
            address = attributes.get(_FETCHED.get(tag, "")) or ""
            if not told and re.match(r"(https?:)?//", address):
                found.append(address)

    Reader().feed(html)
    return found


def _cell(text: str) -> str:
    return escape(text, quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _click_commands() -> dict[str, Any]:
    """Return the commands that have options of click, by their words."""
    from kubetwist.cli.commands import token, why

    of_token = {f"kubetwist token {name}": command for name, command in token.command.commands.items()}
    return {**of_token, "kubetwist why": why.command}


def _commands() -> dict[str, tuple[Any, ...]]:
    from kubetwist.cli import backup, migrate, plugin, restore
    from kubetwist.cli.flagtable import FLAGS
    from kubetwist.testing.envtest import command as envtest

    commands = (backup.Options, restore.Options, migrate.Options, plugin.Options, envtest.Options)
    tools = {options.command: tuple(options.flags) for options in commands}
    return {"kubeapi": FLAGS, **tools}
