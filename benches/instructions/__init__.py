"""Instructions a sample, counted by callgrind: `python -m benches.instructions`.

Counts repeat where times don't, so they are compared with a committed baseline. They say nothing of
caches, memory and waiting.
"""
