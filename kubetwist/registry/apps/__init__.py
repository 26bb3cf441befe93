"""The group apps: Deployments, ReplicaSets, DaemonSets, StatefulSets, ControllerRevisions."""
