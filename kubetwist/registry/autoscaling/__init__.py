"""The group autoscaling: HorizontalPodAutoscalers."""
