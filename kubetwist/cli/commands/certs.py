"""
C{kubetwist certs}: check, renew and rotate the keys and certificates of a data directory.

The server may be running: it reads changed files by itself, at most L{PROPAGATION} seconds later.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ...server.credentials import rotation
from ...server.credentials.certificates import current_time
from ...server.datadir import MARKER
from ...server.errors import StartError
from ...server.watchedfiles import POLL_INTERVAL
from ..flagcommand import ValueType
from ..flagtypes import DURATION

#: Seconds in which all processes of a running server have read a changed file.
PROPAGATION: Final = 2 * POLL_INTERVAL


class _Duration(ValueType):
    """A duration in Go's syntax."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """
        Return seconds.

        @raise click.BadParameter: It is invalid.
        """
        if isinstance(value, float):
            return value
        try:
            return float(DURATION.parse(str(value)))
        except ValueError as error:
            self.fail(f'"{value}": {error}', param, ctx)


class _DataDirectory(ValueType):
    """The path of a data directory; the value is its folder of keys."""

    name = "path"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """
        Return the folder of keys.

        @raise StartError: There is none.
        """
        path = Path(str(value)).absolute()
        if path.name == "pki" and isinstance(value, Path):
            return value
        if not (path / MARKER).is_file() or not (path / "pki").is_dir():
            raise StartError(f"{path} is not a data directory of kubetwist with keys and certificates")
        return path / "pki"


_data_dir = click.option(
    "--data-dir", "pki", type=_DataDirectory(), default="kubetwist-data", show_default=True, help="The data directory."
)


@click.group("certs", help="Check, renew and rotate keys and certificates. The server may be running.")
def command() -> None:
    """Select a subcommand."""


@command.command()
@_data_dir
@click.option(
    "--within",
    type=_Duration(),
    default="168h",
    show_default=True,
    help="Exit with 1 if a certificate ends within this time.",
)
def check(pki: Path, within: float) -> None:
    """List the certificates and the keys of service account tokens, with their ends."""
    now = current_time()
    ending = []
    lines = [("NAME", "SUBJECT", "ISSUER", "RENEWED FROM", "ENDS")]
    for one in rotation.list_certificates(pki):
        renewal = "-" if one.name in rotation.AUTHORITIES else rotation.utc(one.renewal)
        lines.append((one.name, one.subject, one.issuer, renewal, rotation.utc(one.end)))
        if (one.end - now).total_seconds() <= within:
            ending.append(f"{one.name} ends at {rotation.utc(one.end)}")
    _print_table(lines)
    click.echo()
    keys = [(key_id, end or "signs", end) for key_id, end in rotation.list_token_keys(pki)]
    _print_table([("SERVICE ACCOUNT KEY", "VERIFIES UNTIL"), *((key_id, text) for key_id, text, _ in keys)])
    if ending:
        raise StartError("; ".join(ending))


def _print_table(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("   ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


@command.command()
@_data_dir
@click.argument("names", nargs=-1, type=click.Choice(list(rotation.ISSUED)))
def renew(pki: Path, names: tuple[str, ...]) -> None:
    """
    Issue certificates again, with new keys; all of them without NAMES.

    A running server renews its certificates by itself, after two thirds of their lifetimes.
    """
    for name in rotation.renew(pki, names or tuple(rotation.ISSUED)):
        click.echo(f"renewed {name}")


@command.command("rotate-sa-key")
@_data_dir
@click.option(
    "--overlap",
    type=_Duration(),
    default="48h",
    show_default=True,
    help="How long tokens of the previous key are valid.",
)
@click.option("--end-overlap", is_flag=True, help="Create no key: end the overlap of all previous keys now.")
def rotate_sa_key(pki: Path, overlap: float, end_overlap: bool) -> None:
    """Sign tokens of service accounts with a new key, which servers publish before it is used."""
    if end_overlap:
        for key_id in rotation.drop_expired_keys(pki, all_previous=True):
            click.echo(f"tokens of the key {key_id} are not valid any more")
        return

    def published() -> None:
        click.echo(f"waiting {PROPAGATION:.0f} s until servers know the new key")
        time.sleep(PROPAGATION)

    key_id = rotation.rotate_service_account_key(pki, overlap, published)
    click.echo(f"the key {key_id} signs; tokens of previous keys are valid until the overlap has passed:")
    for one, end in rotation.list_token_keys(pki):
        if end:
            click.echo(f"  {one} until {end}")


@command.command("rotate-ca")
@_data_dir
@click.option("--retire", is_flag=True, help="Create no authority: stop to trust the previous one.")
@click.option("--front-proxy", is_flag=True, help="The authority of the client certificate for extension API servers.")
def rotate_ca(pki: Path, retire: bool, front_proxy: bool) -> None:
    """
    Replace the authority of the server's certificates, or the front proxy's, in two steps.

    Without --retire, a new authority issues all certificates, and both are trusted. When all clients have the new
    kubeconfigs and kube-root-ca.crt, --retire removes the previous one.
    """
    rotated = "front-proxy-ca" if front_proxy else "ca"
    if retire:
        for name in rotation.retire_authority(pki, rotated):
            click.echo(f"{name} is not trusted any more")
        return
    click.echo(f"new authority: {rotation.rotate_authority(pki, rotated)}")
    issued = [name for name, authority in rotation.ISSUED.items() if authority == rotated]
    for name in rotation.renew(pki, issued):
        click.echo(f"renewed {name}")
