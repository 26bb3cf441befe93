"""Simulated nodes and the kubelet of their pods: status, logs, commands, ports, probes and pressure."""
