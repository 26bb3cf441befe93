"""Autoscaling of workloads: the controller of HorizontalPodAutoscalers, over the APIs of metrics."""
