"""The code of each check, as the tables of format.md give it."""

CODES = {
    "M1": "file_missing", "M2": "manifest_damaged", "M3": "manifest_damaged", "M4": "manifest_invalid", "M5": "version_unsupported",
    "M6": "manifest_invalid", "M7": "manifest_invalid", "M8": "feature_unsupported", "M9": "manifest_invalid", "M10": "manifest_invalid",
    "M11": "name_invalid", "M12": "name_invalid", "M13": "manifest_invalid",
    "F1": "file_missing", "F2": "file_size",
    "I1": "index_damaged", "I2": "index_damaged", "I3": "index_damaged", "I4": "version_unsupported", "I5": "index_invalid",
    "I6": "feature_unsupported", "I7": "index_invalid", "I8": "identity_mismatch", "I9": "index_invalid", "I10": "feature_unsupported",
    "I11": "index_invalid", "I12": "index_invalid", "I13": "index_damaged", "I14": "index_damaged", "I15": "checksum_mismatch",
    "I16": "index_invalid",
    "E1": "entry_invalid", "E2": "entry_invalid", "E3": "entry_invalid", "E4": "entry_invalid",
    "T1": "manifest_invalid",
    "A1": "metadata_damaged", "A2": "metadata_invalid", "A3": "metadata_invalid", "A4": "metadata_invalid", "A5": "metadata_invalid",
    "A6": "metadata_invalid", "A7": "metadata_invalid", "A8": "metadata_invalid", "A9": "metadata_invalid", "A10": "metadata_invalid",
    "A11": "metadata_invalid", "A12": "metadata_invalid", "A13": "metadata_invalid", "A14": "checksum_mismatch",
    "S1": "shard_damaged", "S2": "shard_damaged", "S3": "shard_mismatch", "S4": "version_unsupported", "S5": "shard_invalid",
    "S6": "shard_damaged", "S7": "version_unsupported", "S8": "feature_unsupported", "S9": "shard_invalid", "S10": "shard_damaged",
    "S11": "shard_invalid", "S12": "shard_mismatch", "S13": "index_invalid", "S14": "record_damaged", "S15": "checksum_mismatch",
    "S16": "shard_invalid", "S17": "shard_invalid",
    "D1": "identity_mismatch",
}  # fmt: skip

SECTIONS = {"M": "8.4", "F": "10.1", "I": "10.2", "E": "10.3", "A": "7.3", "S": "10.4", "T": "10.5", "D": "10.5"}


def section_of(rule: str) -> str:
    return "10.5" if rule == "A14" else SECTIONS[rule[0]]
