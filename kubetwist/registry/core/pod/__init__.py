"""Pods, and pod templates as all workloads have them."""
