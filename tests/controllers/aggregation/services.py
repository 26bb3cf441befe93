"""Services of aggregated API servers."""

from __future__ import annotations

from kubetwist.api.resource import GroupVersion

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


FAR = GroupVersion("far.example.com", "v1")


NAME = "v1.far.example.com"
