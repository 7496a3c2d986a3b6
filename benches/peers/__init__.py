"""The package beside other libraries for training data: `python -m benches.peers`."""
