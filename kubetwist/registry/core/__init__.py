"""The core group (C{""}), one package per kind."""
