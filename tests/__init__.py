"""Tests of kubetwist, in folders that mirror the package."""

from hypothesis import HealthCheck, settings

# How fast the machine is that they run on says nothing about what is tested.
settings.register_profile("kubetwist", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kubetwist")
