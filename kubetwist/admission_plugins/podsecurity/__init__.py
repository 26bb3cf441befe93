"""
The Pod Security Standards: how much a pod may get at of the node that it runs on.

C{levels} is what the labels of a namespace say; C{baseline} and C{restricted} are the checks of the levels that have
any; C{standards} puts them together for each version; C{configuration} and C{plugin} make an admission plugin of it.
All but the last are pure.

@see: kubernetes, C{staging/src/k8s.io/pod-security-admission}.
"""
