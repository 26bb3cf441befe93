"""The group resource.k8s.io: device classes, resource claims, resource slices."""
