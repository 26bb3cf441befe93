"""Controllers of Endpoints and EndpointSlices of services."""
