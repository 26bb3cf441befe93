"""The group rbac.authorization.k8s.io: roles, bindings, and the rules that follow from them."""
