"""The flags, the output and the exit code of C{kubetwist doctor}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar, Final

import orjson

from ..server.diagnosis.findings import Finding, as_document, as_text, exit_code
from ..server.diagnosis.plan import Diagnosis
from ..server.diagnosis.runner import run_checks
from . import kubeapi
from .compatflags import Support, limited_flags
from .flagtable import FLAGS
from .flagtypes import BOOLEAN, DURATION, Flag, flag_group, one_of

DOCTOR_FLAGS: Final = flag_group(
    "Doctor",
    [
        ("output", one_of("text", "json"), "text", "Format of the report: text or json. Short form: -o."),
        ("strict", BOOLEAN, False, "Exit with 1 if there are warnings and no errors."),
        ("timeout", DURATION, 20.0, "Maximum duration of all checks together."),
    ],
)
_SHORT_OUTPUT: Final = "-o"


class Options(kubeapi.Options):
    """Options of C{kubetwist doctor}: the flags of a server, and of the report."""

    command: ClassVar[str] = "doctor"
    description: ClassVar[str] = (
        "Check the data directory, certificates, clock, disk, limits and etcd of a server, and its flags.\n"
        "Set the flags of the server. Nothing is changed, and the server may be running.\n"
        "\n"
        "Exit codes: 0 without problems, 1 with warnings if --strict is set, 2 with errors and for invalid\n"
        "flags."
    )
    flags: ClassVar[Sequence[Flag]] = (*DOCTOR_FLAGS, *FLAGS)

    def getSynopsis(self) -> str:
        """Return the usage line."""
        return "Usage: kubetwist doctor [flags of kubetwist serve]"


def long_flags(arguments: Sequence[str]) -> list[str]:
    """Return arguments with C{--output} instead of C{-o}."""
    result = []
    for argument in arguments:
        if argument == _SHORT_OUTPUT:
            argument = "--output"
        elif argument.startswith(_SHORT_OUTPUT):
            argument = "--output=" + argument.removeprefix(_SHORT_OUTPUT).removeprefix("=")
        result.append(argument)
    return result


def parse(arguments: Sequence[str]) -> Options:
    """
    Parse a command line.

    @raise FlagError: It is invalid.
    """
    options = Options()
    options.read(long_flags(arguments))
    options.check()
    return options


def ineffective() -> Mapping[str, str]:
    """Return the flags without effect, or with a part of it, and the reasons."""
    partial = (Support.NONE, Support.PARTIAL)
    return {name: one.reason for name, one in limited_flags(FLAGS).items() if one.support in partial}


def diagnose(options: Options) -> list[Finding]:
    """Run the checks of a command line."""
    return run_checks(Diagnosis(options, ineffective()).checks(), options["timeout"])


def report(findings: Sequence[Finding], options: Options) -> tuple[str, int]:
    """Return the report, and the exit code."""
    code = exit_code(findings, strict=options["strict"])
    if options["output"] == "json":
        document = as_document(findings, version("kubetwist"))
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n", code
    return as_text(findings), code
