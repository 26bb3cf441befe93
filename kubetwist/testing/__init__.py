"""What the tests of users import: servers that start fast, fakes, suites for providers."""
