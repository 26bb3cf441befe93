"""
Start the installed server and compare its OpenAPI documents with the ones of kube-apiserver in a sibling checkout.

There must be no difference. The checker, its C{openapi.py}, leaves out the descriptions of operations and parameters.

Usage: openapi.py [FOLDER with openapi.py; default ../shared/reference/openapi beside the checkout]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kubetwist.testing import SubprocessServer

HERE = Path(__file__).resolve().parent
#: Seconds for all of it.
TIMEOUT = 300


def main() -> int:
    """Compare; return 1 if anything differs."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "shared" / "reference" / "openapi"
    if not (folder / "openapi.py").exists():
        print(f"openapi: no recorded documents at {folder}, nothing compared")
        return 0
    # The recorded server has an issuer, whose documents are described, too.
    with SubprocessServer(
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--controllers="
    ) as server:
        where = ["--server", server.url, "--token", server.connection.token]
        command = [sys.executable, str(folder / "openapi.py"), "check", *where, "-v"]
        try:
            code = subprocess.run(command, timeout=TIMEOUT).returncode
        except subprocess.TimeoutExpired:
            print(f"openapi: no result after {TIMEOUT} s; the server printed\n{server.output()[-4000:]}")
            return 1
    if code:
        print("openapi: the documents differ from the recorded ones")
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
