"""An authenticator for kubetwist: bearer tokens from a file that has only their hashes."""
