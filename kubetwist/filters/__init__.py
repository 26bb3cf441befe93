"""What every request passes before it is routed: one module per filter."""
