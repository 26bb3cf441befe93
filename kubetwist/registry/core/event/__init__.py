"""Events in the core group."""
