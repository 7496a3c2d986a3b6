"""Benchmarks beside a native limit and plain Python loops: `python -m benches.run`."""
