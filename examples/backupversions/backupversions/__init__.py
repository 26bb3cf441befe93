"""A conversion for kubetwist: the custom resource C{backups.example.org} in the versions v1beta1 and v1."""
