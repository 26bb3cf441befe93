"""The paths of newcomers, as scripts: C{python -m tests.e2e.journeys.first_test}."""
