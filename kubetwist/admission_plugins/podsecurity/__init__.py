"""
The Pod Security Standards, which limit the access of pods to their node.

C{levels} reads the policy from the labels of a namespace. C{baseline} and C{restricted} have the checks of these
levels, and C{standards} selects the checks of a level and version. C{evaluation} evaluates pods and namespaces.
C{configuration} and C{plugin} are the admission plugin. All modules except for C{plugin} are pure.

@see: kubernetes, C{staging/src/k8s.io/pod-security-admission}.
"""
