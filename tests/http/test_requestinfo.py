"""Tests of L{kubetwist.http.requestinfo}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.requestinfo import UnknownRequest, request_info_of

#: Method and URL, then verb, prefix, group, version, namespace, resource, subresource, name, parts.
RESOURCES = """
GET /api/v1/namespaces                              list api - v1 - namespaces - - namespaces
GET /api/v1/namespaces/other                        get api - v1 other namespaces - other namespaces/other
GET /api/v1/namespaces/other/pods                   list api - v1 other pods - - pods
GET /api/v1/namespaces/other/pods/foo               get api - v1 other pods - foo pods/foo
HEAD /api/v1/namespaces/other/pods/foo              get api - v1 other pods - foo pods/foo
GET /api/v1/pods                                    list api - v1 - pods - - pods
HEAD /api/v1/pods                                   list api - v1 - pods - - pods
GET /api/v1/namespaces//pods                        list api - v1 - pods - - pods
GET /api/v1/namespaces/other/pods/                  list api - v1 other pods - - pods
OPTIONS /api/v1/pods                                - api - v1 - pods - - pods
GET /api/v1/proxy/namespaces/other/pods/foo         proxy api - v1 other pods - foo pods/foo
GET /api/v1/proxy/namespaces/other/pods/foo/sub     proxy api - v1 other pods - foo pods/foo/sub
GET /api/v1/watch/pods                              watch api - v1 - pods - - pods
GET /api/v1/watch/namespaces/other/pods             watch api - v1 other pods - - pods
GET /api/v1/watch/namespaces/other/pods/foo         watch api - v1 other pods - foo pods/foo
GET /api/v1/pods?watch=1                            watch api - v1 - pods - - pods
GET /api/v1/pods?watch=true                         watch api - v1 - pods - - pods
GET /api/v1/pods?watch=maybe                        watch api - v1 - pods - - pods
GET /api/v1/pods?watch=                             watch api - v1 - pods - - pods
GET /api/v1/pods?watch=0                            list api - v1 - pods - - pods
GET /api/v1/pods?watch=False                        list api - v1 - pods - - pods
GET /api/v1/pods?watch=0&watch=1                    list api - v1 - pods - - pods
GET /api/v1/namespaces/other/pods/foo?watch=1       get api - v1 other pods - foo pods/foo
GET /api/v1/pods?fieldSelector=metadata.name%3Dfoo  list api - v1 - pods - foo pods
GET /api/v1/pods?fieldSelector=metadata.name==foo   list api - v1 - pods - foo pods
GET /api/v1/pods?fieldSelector=a=b,metadata.name=c  list api - v1 - pods - c pods
GET /api/v1/pods?fieldSelector=metadata.name!=foo   list api - v1 - pods - - pods
GET /api/v1/pods?fieldSelector=metadata.name=a/b    list api - v1 - pods - - pods
GET /api/v1/pods?limit=x&fieldSelector=metadata.name=a  list api - v1 - pods - - pods
GET /api/v1/pods?watch=1&fieldSelector=metadata.name=a  watch api - v1 - pods - a pods
GET /api/v1/pods?fieldSelector=metadata.name=z,metadata.name==m  list api - v1 - pods - m pods
GET /api/v1/pods?fieldSelector=metadata.name=z,metadata.name=m,metadata.name!=a  list api - v1 - pods - m pods
GET /api/v1/pods?fieldSelector=metadata.name=a&fieldSelector=metadata.name=b  list api - v1 - pods - a pods
GET /api/v1/pods?fieldSelector=metadata.name=a,oops  list api - v1 - pods - - pods
GET /api/v1/pods?fieldSelector=metadata.name=a,b=\\x  list api - v1 - pods - - pods
GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=x%20in  list api - v1 - pods - - pods
GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=x%20in%20(y)  list api - v1 - pods - a pods
GET /api/v1/pods?limit=&fieldSelector=metadata.name=a  list api - v1 - pods - a pods
GET /api/v1/pods?timeoutSeconds=&fieldSelector=metadata.name=a  list api - v1 - pods - - pods
GET /api/v1/pods?timeoutSeconds=1_0&fieldSelector=metadata.name=a  list api - v1 - pods - - pods
GET /api/v1/namespaces//pods/foo                    get api - v1 - pods - foo pods/foo
GET /api/v1/namespaces/other/pods//log              list api - v1 other pods log - pods//log
GET /api/v1/namespaces/other/pods/foo/status        get api - v1 other pods status foo pods/foo/status
GET /api/v1/namespaces/other/status                 get api - v1 other namespaces status other namespaces/other/status
PUT /api/v1/namespaces/b/finalize                   update api - v1 b namespaces finalize b namespaces/b/finalize
POST /api/v1/namespaces/other/pods                  create api - v1 other pods - - pods
PATCH /api/v1/namespaces/other/pods/foo             patch api - v1 other pods - foo pods/foo
DELETE /api/v1/namespaces/other/pods/foo            delete api - v1 other pods - foo pods/foo
DELETE /api/v1/namespaces/other/pods                deletecollection api - v1 other pods - - pods
DELETE /api/v1/nodes                                deletecollection api - v1 - nodes - - nodes
GET /apis/apps/v1/namespaces/a/deployments/b/scale  get apis apps v1 a deployments scale b deployments/b/scale
GET /apis/apps/v1/deployments                       list apis apps v1 - deployments - - deployments
GET /api/v1/namespaces/other/configmaps/a%2Fb       get api - v1 other configmaps b a configmaps/a/b
GET /api/v1/namespaces/other/%63onfigmaps           list api - v1 other configmaps - - configmaps
GET /api/v1/namespaces/other/configmaps/..          get api - v1 other configmaps - .. configmaps/..
"""

OTHERS = """
GET /                       get /
GET /healthz                get /healthz
POST /healthz               post /healthz
GET /api                    get /api
GET /api/v1                 get /api/v1
GET /api/v1/                get /api/v1/
GET /apis                   get /apis
GET /apis/apps              get /apis/apps
GET /apis/apps/v1           get /apis/apps/v1
GET /openapi/v3/apis/a/b/c  get /openapi/v3/apis/a/b/c
HEAD /a%20b                 head /a b
"""


class RequestInfoTests(SynchronousTestCase):
    """L{request_info_of}."""

    def test_resources(self) -> None:
        """Paths of resources are parsed as in the reference."""
        for line in RESOURCES.strip().splitlines():
            method, uri, *expected = line.split()
            info = request_info_of(method.encode(), uri.encode())
            actual = [
                info.verb,
                info.api_prefix,
                info.group,
                info.version,
                info.namespace,
                info.resource,
                info.subresource,
                info.name,
                "/".join(info.parts),
            ]
            self.assertEqual([part or "-" for part in actual], expected, line)
            self.assertTrue(info.is_resource_request)

    def test_non_resource_paths(self) -> None:
        """The verb of a non-resource path is the HTTP method in lower case."""
        for line in OTHERS.strip().splitlines():
            method, uri, verb, path = line.split(maxsplit=3)
            info = request_info_of(method.encode(), uri.encode())
            self.assertFalse(info.is_resource_request, line)
            self.assertEqual((info.verb, info.path), (verb, path))

    def test_incomplete(self) -> None:
        """A path that ends after watch or proxy is refused."""
        for path in (b"/api/v1/watch", b"/api/v1/proxy/", b"/apis/apps/v1/watch"):
            self.assertRaises(UnknownRequest, request_info_of, b"GET", path)

    def test_long_running(self) -> None:
        """Watches, proxies, logs and streams are long-running; other requests are not."""
        for uri, expected in (
            (b"/api/v1/pods?watch=1", True),
            (b"/api/v1/watch/pods", True),
            (b"/api/v1/namespaces/a/pods/b/log", True),
            (b"/api/v1/namespaces/a/pods/b/exec", True),
            (b"/api/v1/namespaces/a/pods/b/portforward", True),
            (b"/api/v1/namespaces/a/services/b/proxy/x", True),
            (b"/api/v1/namespaces/a/pods/b/status", False),
            (b"/api/v1/pods", False),
            (b"/healthz", False),
        ):
            self.assertEqual(request_info_of(b"GET", uri).long_running, expected, uri)

    @given(uri=st.binary(max_size=60))
    def test_arbitrary(self, uri: bytes) -> None:
        """Any URL is parsed or refused."""
        try:
            info = request_info_of(b"GET", b"/" + uri)
        except UnknownRequest:
            return
        info.path.encode()
