"""Events, in the shape of the core group."""
