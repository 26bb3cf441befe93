"""
Creates the stores of released formats in F{formats/}, with the code of former commits, from a checkout with history.

Usage: python -m tests.storage.sqlite.oldstores COMMIT NAME, where NAME is the release: 0.1.0. This writes
F{formats/NAME.sqlite.gz}, and F{formats/NAME.json} with the content that the old code has read from it, with digests of
the values. With the path of a store instead of NAME, the old code opens this store, and the content is printed.

The stores are made once per release, and never changed.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

FORMATS = Path(__file__).with_name("formats")

#: Runs with the old code: creates a store if it does not exist, and prints its content.
_SCRIPT = """
import hashlib, json, os, sys
from twisted.internet.task import react
from kubetwist.storage.sqlite import SQLiteStorage
try:
    from kubetwist.api.storage import Write
except ImportError:
    from kubetwist.storage.values import Write

async def fill(storage):
    async def put(*writes):
        return await storage.commit([Write(*one) for one in writes])

    for number in range(40):
        key = f"/registry/configmaps/ns-{number % 4}/cm-{number:02}"
        await put((key, json.dumps({"n": number, "text": "\\u00e9" * number}).encode(), 0))
    for number in range(0, 40, 3):
        await put((f"/registry/configmaps/ns-{number % 4}/cm-{number:02}", b"changed-%d" % number, None))
    for number in range(0, 40, 7):
        await put((f"/registry/configmaps/ns-{number % 4}/cm-{number:02}", None, None))
    await put(("/registry/secrets/a/s", b"k8s:enc:aesgcm:v1:key1:\\0\\1", 0), ("/registry/pods/a/p", b"k8s\\0\\n", 0))
    await storage.compact(storage.revision - 5)
    # Long after the fixture was made, so that nothing expires in a test.
    await put(("/registry/events/a/e", b"e", 0, 3e9))
    await put(("/registry/pods/a/p", b"", None), ("/registry/big/b", b"x" * 20000, 0))

async def main(reactor, path):
    new = not os.path.exists(path)
    storage = SQLiteStorage(path, reactor)
    await storage.open()
    if new:
        await fill(storage)
    page = await storage.read_page("/")
    items = [[item.key, hashlib.sha256(item.value).hexdigest(), item.revision] for item in page.items]
    content = {"revision": storage.revision, "compacted": storage.compacted, "items": items}
    await storage.close()
    print(json.dumps(content, indent=1))

react(main, [sys.argv[1]])
"""


def run(commit: str, store: Path) -> str:
    """Run the script with the code of a commit; return its output."""
    archive = subprocess.run(["git", "archive", commit, "kubetwist"], stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        command = [sys.executable, "-c", _SCRIPT, str(store.absolute())]
        environment = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run(command, stdout=subprocess.PIPE, cwd=folder, env=environment, check=True, text=True)
    return done.stdout


def main() -> None:
    """Create the files of a release, or read a store."""
    commit, name = sys.argv[1:]
    if "/" in name:
        print(run(commit, Path(name)))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.sqlite"
        (FORMATS / f"{name}.json").write_text(run(commit, store))
        (FORMATS / f"{name}.sqlite.gz").write_bytes(gzip.compress(store.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
