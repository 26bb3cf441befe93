"""
Type checking of the expressions of a ValidatingAdmissionPolicy against the kinds that it matches.

Expressions are compiled with dynamic types, so a misspelled field is found when a request is evaluated. Type checking
finds it earlier; the result is reported in the status of the policy and has no other effect.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/validating/typechecking.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..api.resource import GroupVersionKind, GroupVersionResource, JSONObject
from .expressions import Compiler, OptionalVariables

if TYPE_CHECKING:
    from ..cel.schemas import DeclType

#: Maximum number of kinds that are checked for a policy.
MAX_KINDS_PER_RULE: Final = 10


def kinds_to_check(
    policy: JSONObject, kinds_of: Callable[[GroupVersionResource], Iterable[GroupVersionKind]]
) -> list[GroupVersionKind]:
    """
    Return the kinds that the rules of a policy match; rules with wildcards are skipped.

    @param kinds_of: Returns the kinds of a resource.
    """
    kinds: set[GroupVersionKind] = set()
    for rule in (policy["spec"].get("matchConstraints") or {}).get("resourceRules") or ():
        count = 0
        for resource in _named_resources(rule):
            for kind in kinds_of(resource):
                kinds.add(kind)
                count += 1
                if count == MAX_KINDS_PER_RULE:
                    return sorted(kinds)
    return sorted(kinds)


def _named_resources(rule: JSONObject) -> Iterator[GroupVersionResource]:
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in one for one in (*groups, *versions)):
        return
    resources = [one for one in rule.get("resources") or () if "*" not in one and "/" not in one]
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in sorted(resources):
                yield GroupVersionResource(group, version, resource)


def expression_warnings(
    policy: JSONObject, kinds: Sequence[tuple[GroupVersionKind, DeclType]], params: DeclType | None
) -> list[JSONObject]:
    """
    Return the C{expressionWarnings} of a ValidatingAdmissionPolicy's status.

    @param kinds: The kinds that the policy matches, with their types.
    @param params: The type of the parameters; L{None} if unknown.
    """
    spec = policy["spec"]
    compilers = [(gvk, _compiler(spec, declaration, params)) for gvk, declaration in kinds]
    names = OptionalVariables(has_params=spec.get("paramKind") is not None)
    warnings: list[JSONObject] = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            text = validation.get(field)
            if not text:
                continue
            problems = [
                f"{gvk.group}/{gvk.version}, Kind={gvk.kind}: {error.removeprefix('compilation failed: ')}\n"
                for gvk, compiler in compilers
                if (error := compiler.compile(text, names).error)
            ]
            if problems:
                path = f"spec.validations[{index}].{field}"
                warnings.append({"fieldRef": path, "warning": "\n".join(problems)})
    return warnings


def _compiler(spec: JSONObject, declaration: DeclType, params: DeclType | None) -> Compiler:
    types = {"object": declaration.type, "oldObject": declaration.type}
    if params is not None:
        types["params"] = params.type
    compiler = Compiler(composited=True, types=types)
    names = OptionalVariables(has_params=spec.get("paramKind") is not None)
    for variable in spec.get("variables") or ():
        compiler.compile_and_store_variable(variable["name"], variable.get("expression") or "", names)
    return compiler
