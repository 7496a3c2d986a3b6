"""Invalid caches: one defect each, and the check that finds it first."""

from .invalid_index import ENTRIES, INDEX
from .invalid_manifest import MANIFEST
from .invalid_metadata import METADATA
from .invalid_shards import FILES, SHARDS

CASES = {**MANIFEST, **FILES, **INDEX, **ENTRIES, **METADATA, **SHARDS}
