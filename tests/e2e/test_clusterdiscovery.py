"""Tests that client libraries find a test server by themselves: by a kubeconfig, and as in a pod."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import ChildKubeAPI, Connection

from .conftest import KUBECTL
from .pages import run_pytest

ROBOT = "system:serviceaccount:dev:robot"
#: The resource that reports the identity, which each user may create.
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@pytest.fixture(scope="module")
def admin() -> Iterator[Connection]:
    """The connection of a server."""
    with ChildKubeAPI("--controllers=") as server:
        yield server.connection


def kubernetes(kubeconfig: bool) -> str:
    """Return the user of the default client of kubernetes."""
    config, client = pytest.importorskip("kubernetes.config"), pytest.importorskip("kubernetes.client")
    if kubeconfig:
        config.load_kube_config()
    else:
        config.load_incluster_config()
    with client.ApiClient() as api:
        review = client.AuthenticationV1Api(api).create_self_subject_review(REVIEW)
    return str(review.status.user_info.username)


def kubernetes_load_config(kubeconfig: bool) -> str:
    """Return the user of the client that C{load_config} of kubernetes configures, which tries both ways."""
    config, client = pytest.importorskip("kubernetes.config"), pytest.importorskip("kubernetes.client")
    config.load_config()
    with client.ApiClient() as api:
        review = client.AuthenticationV1Api(api).create_self_subject_review(REVIEW)
    return str(review.status.user_info.username)


def kubernetes_asyncio(kubeconfig: bool, library: str = "kubernetes_asyncio") -> str:
    """Return the user of the default client of kubernetes_asyncio, or of kubernetes.aio."""
    config, client = pytest.importorskip(f"{library}.config"), pytest.importorskip(f"{library}.client")

    async def ask() -> str:
        if kubeconfig:
            await config.load_kube_config()
        else:
            config.load_incluster_config()
        async with client.ApiClient() as api:
            review = await client.AuthenticationV1Api(api).create_self_subject_review(REVIEW)
        return str(review.status.user_info.username)

    return asyncio.run(ask())


def kubernetes_aio(kubeconfig: bool) -> str:
    """Return the user of the default client of kubernetes.aio."""
    return kubernetes_asyncio(kubeconfig, "kubernetes.aio")


def kr8s(kubeconfig: bool) -> str:
    """Return the user of the default client of kr8s."""
    library = pytest.importorskip("kr8s")

    async def ask() -> str:
        api = await library.asyncio.api()
        where = {"base": "/apis", "version": "authentication.k8s.io/v1"}
        async with api.call_api("POST", url="selfsubjectreviews", json=REVIEW, **where) as response:
            return str(response.json()["status"]["userInfo"]["username"])

    return asyncio.run(ask())


def lightkube(kubeconfig: bool) -> str:
    """Return the user of the default client of lightkube."""
    library = pytest.importorskip("lightkube")
    review = pytest.importorskip("lightkube.resources.authentication_v1").SelfSubjectReview
    return str(library.Client().create(review()).status.userInfo.username)


def pykube(kubeconfig: bool) -> str:
    """Return the user of the default client of pykube-ng."""
    library = pytest.importorskip("pykube")
    client = library.HTTPClient(library.KubeConfig.from_env())
    response = client.post(base="/apis", version="authentication.k8s.io/v1", url="selfsubjectreviews", json=REVIEW)
    return str(response.json()["status"]["userInfo"]["username"])


def kopf_login(name: str) -> Callable[[bool], str]:
    """Return a function that returns the user of one of kopf's logins."""

    def find(kubeconfig: bool) -> str:
        kopf = pytest.importorskip("kopf")
        aiohttp = pytest.importorskip("aiohttp")
        auth = pytest.importorskip("kopf._cogs.clients.auth")

        async def ask() -> str:
            info = getattr(kopf, name)(logger=logging.getLogger(), settings=kopf.OperatorSettings())
            if asyncio.iscoroutine(info):
                info = await info
            context = auth.APIContext(info)
            try:
                async with context.session.post(info.server + REVIEWS, json=REVIEW) as response:
                    return str((await response.json())["status"]["userInfo"]["username"])
            except aiohttp.ClientError as error:
                pytest.fail(f"{name}: {error}")
            finally:
                await context.close()

        return asyncio.run(ask())

    find.__name__ = f"kopf_{name}"
    return find


BOTH: list[Callable[[bool], str]] = [
    kubernetes,
    kubernetes_load_config,
    kubernetes_asyncio,
    kubernetes_aio,
    kr8s,
    lightkube,
    pykube,
    *map(kopf_login, ("login_via_client", "login_via_pykube")),
]


@pytest.mark.parametrize("find", [*BOTH, kopf_login("login_with_kubeconfig")], ids=lambda find: find.__name__)
def test_kubeconfig(admin: Connection, find: Callable[[bool], str]) -> None:
    """Clients use the kubeconfig of the innermost context, one after the other."""
    alice, bob = admin.as_user("alice"), admin.as_user("bob")
    with alice.use_kubeconfig():
        assert find(True) == "alice"
        with bob.use_kubeconfig():
            assert find(True) == "bob"
        assert find(True) == "alice"


@pytest.mark.parametrize("find", [*BOTH, kopf_login("login_with_service_account")], ids=lambda find: find.__name__)
def test_in_cluster(admin: Connection, find: Callable[[bool], str]) -> None:
    """Clients use the service account, also where a kubeconfig would precede it."""
    robot = admin.as_service_account("dev", "robot", create=True)
    with admin.as_user("alice").use_kubeconfig(), robot.use_in_cluster() as folder:
        assert find(False) == ROBOT
        assert (folder / "token").read_text() == robot.token
        assert Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text() == "dev"


@pytest.mark.parametrize(
    "library", ["kubernetes", "kubernetes_asyncio", "kubernetes_aio", "kr8s", "lightkube", "pykube"]
)
def test_imported_late(admin: Connection, library: str) -> None:
    """Libraries that are imported in the context find the server, too."""
    robot = admin.as_service_account("dev", "robot", create=True)
    code = (
        "import sys\nfrom pathlib import Path\nfrom kubetwist.testing import Connection\n"
        "from tests.e2e import test_clusterdiscovery as tests\n"
        "robot, alice = (Connection.from_kubeconfig(Path(path)) for path in sys.argv[1:])\n"
        f"find = tests.{library}\nname = '{library}'.removesuffix('_aio')\nassert name not in sys.modules\n"
        "with robot.use_in_cluster():\n    print(find(False))\nassert name in sys.modules\n"
        "with alice.use_kubeconfig():\n    print(find(True))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    command = [sys.executable, "-c", code, str(robot.kubeconfig), str(admin.as_user("alice").kubeconfig)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if "Skipped:" in done.stderr:
        pytest.skip(f"{library} is not installed")
    assert done.stdout.split() == [ROBOT, "alice"], done.stderr


@pytest.mark.kubectl
def test_kubectl(admin: Connection) -> None:
    """kubectl, another process, uses the kubeconfig, also of a service account."""
    robot = admin.as_service_account("dev", "robot", create=True)
    for connection, name in ((admin.as_user("alice", ["dev"]), "alice"), (robot, ROBOT)):
        with connection.use_kubeconfig():
            command = [str(KUBECTL), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == name


FIXTURES = """
import os
from pathlib import Path
import pytest

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def user(connection):
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    code, review = connection.request("POST", REVIEWS, body)
    assert code == 201
    return review["status"]["userInfo"]["username"]


def test_default(kubernetes_incluster):
    assert user(kubernetes_incluster) == "system:serviceaccount:default:default"
    assert (ACCOUNT / "namespace").read_text() == "default"
    assert "KUBECONFIG" not in os.environ


@pytest.mark.kubernetes_service_account("operators", "robot")
def test_marker(kubernetes_incluster, kube_api_clean):
    assert user(kubernetes_incluster) == "system:serviceaccount:operators:robot"
    assert (ACCOUNT / "token").read_text() == kubernetes_incluster.token


@pytest.mark.parametrize("kubernetes_incluster", [("dev", "a"), ("dev", "b")], indirect=True)
def test_parameter(kubernetes_incluster):
    assert user(kubernetes_incluster).startswith("system:serviceaccount:dev:")


def test_kubeconfig(kubeconfig, kube_api):
    assert os.environ["KUBECONFIG"] == str(kubeconfig) == str(kube_api.kubeconfig)
    assert Path("~/.kube/config").expanduser().read_text() == kubeconfig.read_text()
    assert not ACCOUNT.exists()


def test_neither():
    assert "KUBERNETES_SERVICE_PORT" not in os.environ
"""


@pytest.mark.parametrize("where", ["thread", "child", "process"])
def test_fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """The fixtures work with each kind of server."""
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)
    text = FIXTURES.replace(", kube_api_clean", "") if where == "process" else FIXTURES
    (tmp_path / "test_mine.py").write_text(text)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nkubetwist_server = {where}\naddopts = --strict-markers\n")
    assert "6 passed" in run_pytest(tmp_path)


def test_wrong_account(tmp_path: Path) -> None:
    """An account without a namespace is an error."""
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('kubernetes_incluster', ['robot'], indirect=True)\n"
        "def test_mine(kubernetes_incluster):\n    pass\n"
    )
    with pytest.raises(AssertionError, match=r"the service account is 'robot', must be \(namespace, name\)"):
        run_pytest(tmp_path)
