"""The code of each check, as the tables of format.md give it."""

_CHECKS = {
    "file_missing": "M1 F1",
    "manifest_damaged": "M2 M3 M4",
    "manifest_invalid": "M5 M7 M8 M10 M11 M14 M15 T1",
    "version_unsupported": "M6 I4 S4 S7",
    "feature_unsupported": "M9 I6 I10 S8",
    "name_invalid": "M12 M13",
    "file_size": "F2",
    "index_damaged": "I1 I2 I3 I13 I14",
    "index_invalid": "I5 I7 I8 I9 I11 I12 I16",
    "checksum_mismatch": "I15 A14 S15",
    "entry_invalid": "E1 E2 E3 E4 S13",
    "metadata_damaged": "A1",
    "metadata_invalid": "A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13",
    "shard_damaged": "S1 S2 S6 S10",
    "shard_mismatch": "S3",
    "shard_invalid": "S5 S9 S11 S12 S16 S17",
    "record_damaged": "S14",
    "identity_mismatch": "D1",
}
CODES = {check: code for code, checks in _CHECKS.items() for check in checks.split()}

SECTIONS = {
    "M": "8.4",
    "F": "10.1",
    "I": "10.2",
    "E": "10.3",
    "A": "7.3",
    "S": "10.4",
    "T": "10.5",
    "D": "10.5",
}


def section_of(rule: str) -> str:
    return "10.5" if rule == "A14" else SECTIONS[rule[0]]
