"""C{kubetwist completion}: print a script for the completion of a shell."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from ..flagcommand import help_text

SHELLS = ("bash", "zsh", "fish")
_HELP = """
Print a script for the completion of commands and flags, including the flags of kubetwist serve.

    bash:  eval "$(kubetwist completion bash)"   in ~/.bashrc
    zsh:   eval "$(kubetwist completion zsh)"    in ~/.zshrc
    fish:  kubetwist completion fish > ~/.config/fish/completions/kubetwist.fish
"""


@click.command("completion", help=help_text(_HELP))
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script of a shell."""
    click.echo(completion_script(click.get_current_context().find_root().command, shell))


def completion_script(program: click.Command, shell: str) -> str:
    """
    Return the script of click for a shell.

    @param program: The command to complete.
    @param shell: One of L{SHELLS}.
    """
    complete = get_completion_class(shell)
    assert complete is not None, "click has these shells"
    # The method of the class for bash starts a shell to check its version.
    return ShellComplete.source(complete(program, {}, "kubetwist", "_KUBETWIST_COMPLETE"))
