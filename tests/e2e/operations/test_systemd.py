"""
The unit of systemd: checked by systemd-analyze, and run by systemd with its whole sandbox.

systemd runs in a container of systemd-nspawn, with the /usr of this machine and the interpreter of the tests.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import kubetwist

from ..pages import DOCS
from .files import DEPLOY

UNIT = DEPLOY / "systemd" / "kubetwist.service"
#: Maximum exposure level in tenths, which systemd-analyze computes; a service without sandbox has 96.
MAX_EXPOSURE = 12
#: Seconds that the container has to boot and to run all steps.
TIMEOUT = 240

#: Runs in the container as /opt/steps; each line is a step.
STEPS = """
set -eux
fail() { systemctl status --no-pager --full kubetwist; journalctl --no-pager -u kubetwist; exit 1; }
systemctl start kubetwist || fail
systemctl show -P StatusText kubetwist | grep -x 'serving on https://127.0.0.1:6443'
stat -c '%U %a' /var/lib/kubetwist | grep -x 'kubetwist 700'
/opt/bin/request GET /readyz | grep -x ok
/opt/bin/request POST /api/v1/namespaces/default/configmaps '{"metadata": {"name": "kept"}}' | grep '"kept"'
systemctl reload kubetwist
systemctl is-active kubetwist
journalctl --no-pager -u kubetwist | grep 'received SIGHUP'
# A process that hangs is started again by the watchdog, with all acknowledged writes.
pid=$(systemctl show -P MainPID kubetwist)
kill -STOP "$pid"
for i in $(seq 600); do
    if [ "$(systemctl show -P NRestarts kubetwist)" = 1 ] && systemctl -q is-active kubetwist; then break; fi
    sleep 0.1
done
[ "$(systemctl show -P NRestarts kubetwist)" = 1 ] || fail
journalctl --no-pager -u kubetwist | grep 'Watchdog timeout'
/opt/bin/request GET /api/v1/namespaces/default/configmaps/kept | grep '"kept"'
systemctl stop kubetwist
[ "$(systemctl show -P Result kubetwist)" = success ] || fail
[ "$(systemctl show -P ExecMainStatus kubetwist)" = 0 ] || fail
"""

#: A program of the environment: C{bin/kubetwist}, or another one with the same modules.
PROGRAM = """#!{python}
import sys

sys.path[:0] = {paths}
{main}
"""

#: The end of a program that sends a request as the administrator.
REQUEST = """
import json
from pathlib import Path

from kubetwist.testing import Connection

connection = Connection.from_kubeconfig(Path("/var/lib/kubetwist/admin.kubeconfig"))
method, path, *body = sys.argv[1:]
code, answer = connection.request(method, path, *map(json.loads, body))
print(answer if isinstance(answer, str) else json.dumps(answer))
sys.exit(code >= 300)
"""

#: Settings that make the steps quick, and that an interpreter with a shared library needs.
QUICK = """
[Service]
Environment=LD_LIBRARY_PATH=/opt/python/lib
WatchdogSec=3s
TimeoutAbortSec=1s
"""

RUNNER = """
[Unit]
SuccessAction=poweroff-force
FailureAction=poweroff-force

[Service]
Type=oneshot
Environment=LD_LIBRARY_PATH=/opt/python/lib
ExecStart=/bin/sh /opt/steps
StandardOutput=append:/opt/results/output
StandardError=append:/opt/results/output
ExecStopPost=/bin/sh -c 'echo "$EXIT_STATUS" > /opt/results/status'
"""


@pytest.fixture
def analyze() -> str:
    """The program systemd-analyze, of a release that checks files."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if int(version.partition(".")[0]) < 250:
        pytest.skip(f"systemd-analyze {version} cannot check the security of files")
    return program


def test_verify(analyze: str, tmp_path: Path) -> None:
    """systemd-analyze finds nothing wrong in the unit; only the program is at another place here."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/kubetwist/bin/kubetwist", sys.executable))
    done = subprocess.run([analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
    # systemd-analyze also prints warnings about other units of the machine.
    lines = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.name in line]
    assert (done.returncode, lines) == (0, [])


def test_security(analyze: str) -> None:
    """The unit has a sandbox: its exposure is low."""
    command = [analyze, "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", "--no-pager", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Overall exposure level for kubetwist.service" in done.stdout


def test_flags() -> None:
    """The file of flags is valid for the parser of the server."""
    from kubetwist.cli.kubeapi import Options

    (line,) = [
        line for line in (UNIT.parent / "kubetwist.env").read_text().splitlines() if line.startswith("KUBETWIST_FLAGS=")
    ]
    (flags,) = shlex.split(line.partition("=")[2])
    Options().parseOptions(flags.split())


def test_installation(tmp_path: Path) -> None:
    """The commands of the page install the files, create the user, and enable the unit, here below another root."""
    programs = [shutil.which(name) for name in ("systemctl", "systemd-sysusers")]
    if not all(programs):
        pytest.skip("systemd is not installed")
    (script,) = re.findall(
        r"```shell\n(python3 -m venv .*?)```", (DOCS / "deployment.md").read_text("utf-8"), re.DOTALL
    )
    virtual, *installs, start = script.splitlines()
    assert virtual == "python3 -m venv /opt/kubetwist && /opt/kubetwist/bin/pip install kubetwist"
    assert start == "systemd-sysusers && systemctl daemon-reload && systemctl enable --now kubetwist"
    (tmp_path / "etc").mkdir()
    program = tmp_path / "opt" / "kubetwist" / "bin" / "kubetwist"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    for line in installs:
        *command, target = shlex.split(line)
        assert command[:2] == ["install", "-D"] and target.startswith("/etc/")
        subprocess.run([*command, f"{tmp_path}{target}"], cwd=DEPLOY.parent, check=True)
    assert (tmp_path / "etc" / "kubetwist" / "kubetwist.env").stat().st_mode & 0o777 == 0o640
    for command in (
        ["systemd-sysusers", f"--root={tmp_path}"],
        ["systemctl", f"--root={tmp_path}", "enable", "kubetwist"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert "kubetwist:" in (tmp_path / "etc" / "passwd").read_text()
    link = tmp_path / "etc" / "systemd" / "system" / "multi-user.target.wants" / "kubetwist.service"
    assert os.readlink(link) == "/etc/systemd/system/kubetwist.service"


def _write_environment(folder: Path) -> list[str]:
    """
    Write what /opt has in the container.

    @return: The flags of systemd-nspawn that make the interpreter and its packages available.
    """
    binds = [f"--bind-ro={sys.base_prefix}:/opt/python"]
    paths = []
    source = Path(kubetwist.__file__).parents[1]
    for path in dict.fromkeys([source, *map(Path, sys.path)]):
        if not path.is_dir() or (path.is_relative_to(sysconfig.get_path("stdlib")) and path.name != "site-packages"):
            continue
        paths.append(f"/opt/packages/{len(paths)}")
        binds.append(f"--bind-ro={path}:{paths[-1]}")
    python = f"/opt/python/bin/{Path(os.path.realpath(sys.executable)).name}"
    for name, main in {
        "kubetwist/bin/kubetwist": "from kubetwist.cli.main import main\n\nmain()",
        "bin/request": REQUEST,
    }.items():
        program = folder / name
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM.format(python=python, paths=paths, main=main))
        program.chmod(0o755)
        binds.append(f"--bind-ro={program}:/opt/{name}")
    return binds


def test_run(tmp_path: Path) -> None:
    """
    systemd runs the server in the sandbox of the unit: it is ready, reloads, is restarted by the watchdog, and stops.

    The data survive the restart.
    """
    nspawn = shutil.which("systemd-nspawn")
    if nspawn is None or os.geteuid() or not os.path.isdir("/sys/fs/cgroup"):
        pytest.skip("needs root and systemd-nspawn")
    results = tmp_path / "results"
    results.mkdir()
    files = {
        "steps": (STEPS, "/opt/steps"),
        "runner.service": (RUNNER, "/etc/systemd/system/runner.service"),
        "quick.conf": (QUICK, "/etc/systemd/system/kubetwist.service.d/quick.conf"),
        "kubetwist.env": ('KUBETWIST_FLAGS="--bind-address=127.0.0.1"\n', "/etc/kubetwist/kubetwist.env"),
    }
    binds = [f"--bind={results}:/opt/results", *_write_environment(tmp_path)]
    for name, (text, place) in files.items():
        (tmp_path / name).write_text(text)
        binds.append(f"--bind-ro={tmp_path / name}:{place}")
    binds.append(f"--bind-ro={UNIT}:/etc/systemd/system/kubetwist.service")
    binds.append(f"--bind-ro={UNIT.parent / 'kubetwist.sysusers.conf'}:/etc/sysusers.d/kubetwist.conf")
    command = [nspawn, "--quiet", "--register=no", "--keep-unit", "--volatile=yes", "--directory=/", "--boot"]
    command += ["--console=pipe", "--private-network", f"--machine=kubetwist-{os.getpid()}", *binds]
    # There is no network to wait for.
    command += ["systemd.mask=systemd-networkd-wait-online.service", "systemd.mask=systemd-networkd.service"]
    command += ["systemd.firstboot=off", "systemd.unit=runner.service", "systemd.show_status=no"]
    booted = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=TIMEOUT
    )
    status = results / "status"
    if not status.exists():
        # A container of another kind may not allow containers.
        pytest.skip(f"systemd does not boot here: {booted.stderr[-500:] or booted.stdout[-500:]}")
    assert status.read_text() == "0\n", (results / "output").read_text()
