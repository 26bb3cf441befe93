"""The group policy: PodDisruptionBudgets."""
