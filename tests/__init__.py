"""Tests of kubetwist, in folders that mirror the package."""

from hypothesis import HealthCheck, settings

# The speed of the machine must not affect the results.
settings.register_profile("kubetwist", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kubetwist")
