"""C{kubetwist hardening}: check the flags of a server by the CIS Kubernetes benchmark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from ...server.hardening import FAIL, MANUAL, PASS, check, secrets_provider
from ..command import CommandError
from ..kubeapi import Options


@click.command(
    "hardening",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
@click.option("--failures", is_flag=True, help="Print only the checks that do not pass.")
def command(flags: tuple[str, ...], failures: bool) -> None:
    """
    Check the FLAGS of a server by the control-plane items (1.2) of the CIS Kubernetes benchmark.

    FLAGS are the flags of `kubetwist serve`; nothing is started. The exit code is 1 if a check fails. The checks whose
    number begins with K are not in the benchmark.
    """
    options = Options()
    # So that errors of flags are raised.
    options.read(list(flags))
    options.check()
    provider = ""
    path = options["encryption-provider-config"]
    if path:
        try:
            provider = secrets_provider(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(f"--encryption-provider-config: cannot read {path}: {error}") from error
    items = list(check(options, provider))
    for item in items:
        if item.state != PASS or not failures:
            remedy = f" -- {item.remedy}" if item.remedy else ""
            click.echo(f"{item.id:7} {item.state:6} {item.title}{remedy}")
    counts = Counter(item.state for item in items)
    click.echo(f"{counts[PASS]} passed, {counts[FAIL]} failed, {counts[MANUAL]} to check by hand")
    if counts[FAIL]:
        raise click.exceptions.Exit(1)
