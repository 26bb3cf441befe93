"""The group events.k8s.io, whose events are stored in the shape of the core group."""
