"""Reconcilers of the endpoints of the service C{kubernetes}, selected by C{--endpoint-reconciler-type}."""
