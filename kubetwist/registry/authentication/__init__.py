"""The group authentication.k8s.io: reviews of tokens and users."""
