"""A controller for kubetwist: deletes objects at the time in their annotation."""
