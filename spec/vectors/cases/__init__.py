"""The cases: what each vector holds and what must come of it."""
