"""
Base environment of the expressions of Kubernetes 1.36.

See kubernetes/apiserver, C{pkg/cel/environment/base.go}.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubetwist.cel.environment import Environment
    from kubetwist.cel.functions import Library


@cache
def kubernetes_libraries() -> tuple[Library, ...]:
    """Return the libraries, in the order in which their overloads are tried."""
    from kubetwist.cel.library.addresses import CIDRS, IPS
    from kubetwist.cel.library.authz import AUTHZ, AUTHZ_SELECTORS
    from kubetwist.cel.library.kubelists import KUBERNETES_LISTS
    from kubetwist.cel.library.lists import LISTS
    from kubetwist.cel.library.namedformats import NAMED_FORMATS
    from kubetwist.cel.library.optionals import OPTIONALS
    from kubetwist.cel.library.quantities import QUANTITIES
    from kubetwist.cel.library.regex import REGEX
    from kubetwist.cel.library.sets import SETS
    from kubetwist.cel.library.strings import STRINGS
    from kubetwist.cel.library.urls import URLS
    from kubetwist.cel.library.versions import VERSIONS
    from kubetwist.cel.standard import TWO_VARIABLE_COMPREHENSIONS

    return (
        URLS,
        REGEX,
        KUBERNETES_LISTS,
        AUTHZ,
        OPTIONALS,
        QUANTITIES,
        STRINGS,
        SETS,
        IPS,
        CIDRS,
        NAMED_FORMATS,
        AUTHZ_SELECTORS,
        TWO_VARIABLE_COMPREHENSIONS,
        VERSIONS,
        LISTS,
    )


def kubernetes_environment(patches: bool = False) -> Environment:
    """
    Return the environment without variables, which is created at first use.

    @param patches: Whether it has C{Object}, C{JSONPatch} and C{jsonpatch}, for MutatingAdmissionPolicies.
    """
    return _environment(patches)


def mutation_environment() -> Environment:
    """Return the environment of mutations in MutatingAdmissionPolicies."""
    return _environment(True)


@cache
def _environment(patches: bool) -> Environment:
    from kubetwist.cel.environment import Environment
    from kubetwist.cel.library.costs import KubernetesCosts
    from kubetwist.cel.library.stringformat import check_formats

    libraries, costs, validators = kubernetes_libraries(), KubernetesCosts(), (check_formats,)
    if not patches:
        return Environment(libraries=libraries, costs=costs, validators=validators)
    from kubetwist.cel.library.jsonpatches import JSON_PATCHES
    from kubetwist.cel.library.mutation import find_type

    libraries = (*libraries, JSON_PATCHES)
    return Environment(libraries=libraries, costs=costs, find_type=find_type, validators=validators)
