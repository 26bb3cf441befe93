"""The group apiregistration.k8s.io: APIServices."""
