"""The group authorization.k8s.io: access reviews."""
