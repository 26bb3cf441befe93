"""
Audit the packages that an installation of the wheel has, and write their software bill of materials (CycloneDX).

    python .ci/packageaudit.py FOLDER

The interpreter is the one of an environment with the wheel and its requirements only; the tools are installed into a
virtual environment in FOLDER, in which F{sbom.json} is written and validated. The exit code is 1 if a package has a
known vulnerability that F{audit-ignored.toml} does not list with a reason. Without access to the database of
vulnerabilities the script prints this, and does not fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

IGNORED = Path(__file__).parent / "audit-ignored.toml"
TOOLS = ("pip-audit", "cyclonedx-bom")
#: Seconds for all requests of the database.
PATIENCE = 60
#: Texts of errors of the network in the output of pip-audit.
UNREACHABLE = (
    "Connection",
    "ConnectTimeout",
    "Max retries",
    "Name or service",
    "HTTPError",
    "ServiceError",
    "timed out",
)


def findings(report: Mapping[str, Any], ignored: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """
    Return the vulnerabilities in a report of pip-audit that are not ignored, and the ignored ones that are not in it.

    @param report: The decoded report.
    @param ignored: Reasons by the id of a vulnerability.
    """
    found, used = [], set()
    for package in report["dependencies"]:
        for one in package.get("vulns", ()):
            names = {one["id"], *one.get("aliases", ())}
            if names & ignored.keys():
                used |= names & ignored.keys()
            else:
                fixed = ", ".join(one.get("fix_versions", ())) or "no version yet"
                found.append(f"{package['name']} {package['version']}: {one['id']}, fixed in {fixed}")
    return found, sorted(ignored.keys() - used)


def audit(tools: Path, packages: str) -> int:
    """Run pip-audit; returns the exit code."""
    command: list[str | Path] = [
        tools / "pip-audit",
        "--path",
        packages,
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    try:
        done = subprocess.run([*command, "--timeout", "10"], capture_output=True, text=True, timeout=PATIENCE)
        report = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        print("audit: not done: the database of vulnerabilities does not answer")
        return 0
    except ValueError:
        if any(text in done.stderr for text in UNREACHABLE):
            print(f"audit: not done: the database of vulnerabilities is not reachable: {done.stderr.strip()[-200:]}")
            return 0
        print(done.stdout, done.stderr, sep="\n")
        return 1
    ignored = tomllib.loads(IGNORED.read_text("utf-8"))
    found, unused = findings(report, ignored)
    for text in unused:
        print(f"audit: {IGNORED.name} lists {text}, which no package has any more")
    print(*(f"audit: {text}" for text in found), sep="\n")
    print(f"audit: {len(report['dependencies'])} packages, {len(found)} vulnerabilities")
    return 1 if found or unused else 0


def main() -> int:
    """Install the tools, write the bill of materials, audit."""
    folder = Path(sys.argv[1])
    venv.create(folder / "tools", with_pip=True, clear=True)
    tools = folder / "tools" / "bin"
    subprocess.run([tools / "pip", "install", "--quiet", *TOOLS], check=True)
    target = folder / "sbom.json"
    command: list[str | Path] = [
        tools / "cyclonedx-py",
        "environment",
        "--validate",
        "--output-format",
        "JSON",
        "--output-file",
        target,
    ]
    subprocess.run([*command, sys.executable], check=True)
    components = {one["name"].lower(): one["version"] for one in json.loads(target.read_text())["components"]}
    missing = {"kubetwist", "twisted", "attrs"} - components.keys()
    if missing:
        print(f"sbom: {', '.join(sorted(missing))} are missing in {target}")
        return 1
    print(f"sbom: {target}: {len(components)} components")
    return audit(tools, sysconfig.get_path("purelib"))


if __name__ == "__main__":
    sys.exit(main())
