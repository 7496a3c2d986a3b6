"""Checks A2 to A13 and the columns (format.md, section 7.3)."""

import struct

from .flatread import Broken, root

CODES = {"bool": 6, "int64": 2, "float64": 3, "utf8": 5}


class Refused(Exception):
    def __init__(self, code: str, rule: str) -> None:
        super().__init__(code, rule)
        self.code, self.rule = code, rule


def need(condition, code: str, rule: str) -> None:
    if not condition:
        raise Refused(code, rule)


def columns(raw: bytes, fields: list[dict], samples: int) -> list[list]:
    """Columns of values; float64 as bit patterns, nulls as None."""
    bad = "metadata_invalid"
    need(len(raw) >= 26 and raw[:8] == b"ARROW1\0\0" and raw[-6:] == b"ARROW1", bad, "A2")
    size = struct.unpack_from("<i", raw, len(raw) - 10)[0]
    at = len(raw) - 10 - size
    need(size >= 8 and at >= 8, bad, "A2")
    try:
        footer = root(raw[at : at + size])
        need(footer.scalar(0, "<h") == 4, bad, "A3")
        check_schema(footer, fields)
        blocks = footer.structs(3, "<qi4xq")
    except Broken:
        raise Refused(bad, "A3") from None
    batches, end = [], 8
    for offset, meta, body in blocks:
        sound = offset >= 8 and offset % 8 == 0 and meta >= 16 and meta % 8 == 0 and body >= 0
        need(sound and end <= offset and offset + meta + body <= at, bad, "A5")
        end = offset + meta + body
    for offset, meta, body in blocks:
        need(struct.unpack_from("<Ii", raw, offset) == (0xFFFFFFFF, meta - 8), bad, "A6")
        try:
            batches.append(
                (offset + meta, body, *message(raw[offset + 8 : offset + meta], body, fields))
            )
        except Broken:
            raise Refused(bad, "A6") from None
    need(sum(b[2] for b in batches) == samples, bad, "A8")
    for _, body, rows, nodes, buffers in batches:
        end = 0
        for start, length in buffers:
            sound = start >= 0 and length >= 0 and start % 8 == 0 and start + length <= body
            need(sound and (length == 0 or end <= start), bad, "A9")
            end = start + length if length else end
        check_lengths(fields, rows, nodes, buffers)
    out = [[] for _ in fields]
    for body_at, _, rows, nodes, buffers in batches:
        parts = iter(raw[body_at + s : body_at + s + n] for s, n in buffers)
        for column, f, (_, nulls) in zip(out, fields, nodes, strict=True):
            column += values(f, rows, nulls, parts)
    return out


def check_schema(footer, fields: list[dict]) -> None:
    bad = "metadata_invalid"
    schema = footer.table(1)
    need(schema is not None, bad, "A3")
    need(schema.scalar(0, "<h") == 0 and footer.count(2) == 0, bad, "A4")
    found = schema.tables(1)
    need(len(found) == len(fields), bad, "A4")
    for view, f in zip(found, fields, strict=True):
        need(view.text(0) == f["name"] and bool(view.scalar(1, "<B")) == f["nullable"], bad, "A4")
        need(view.scalar(2, "<B") == CODES[f["type"]], bad, "A4")
        type_ = view.table(3)
        need(type_ is not None and view.table(4) is None and view.count(5) == 0, bad, "A4")
        if f["type"] == "int64":
            need(type_.scalar(0, "<i") == 64 and type_.scalar(1, "<B") == 1, bad, "A4")
        if f["type"] == "float64":
            need(type_.scalar(0, "<h") == 2, bad, "A4")
        need(all(not kv.text(0).startswith("ARROW:extension:") for kv in view.tables(6)), bad, "A4")


def message(raw: bytes, body: int, fields: list[dict]):
    bad = "metadata_invalid"
    view = root(raw)
    need(
        view.scalar(0, "<h") == 4 and view.scalar(1, "<B") == 3 and view.scalar(3, "<q") == body,
        bad,
        "A6",
    )
    batch = view.table(2)
    need(batch is not None, bad, "A6")
    rows, nodes, buffers = batch.scalar(0, "<q"), batch.structs(1, "<qq"), batch.structs(2, "<qq")
    need(batch.table(3) is None and batch.count(4) == 0 and rows >= 1, bad, "A7")
    need(len(nodes) == len(fields) and all(n[0] == rows for n in nodes), bad, "A7")
    need(len(buffers) == sum(3 if f["type"] == "utf8" else 2 for f in fields), bad, "A7")
    return rows, nodes, buffers


def check_lengths(fields, rows, nodes, buffers) -> None:
    lengths = iter(n for _, n in buffers)
    for f, (_, nulls) in zip(fields, nodes, strict=True):
        ok = 0 <= nulls <= rows and (nulls == 0 or f["nullable"])
        ok &= next(lengths) >= (-(-rows // 8) if nulls else 0)
        least = {"bool": -(-rows // 8), "utf8": 4 * (rows + 1)}.get(f["type"], 8 * rows)
        ok &= next(lengths) >= least
        if f["type"] == "utf8":
            next(lengths)
        need(ok, "metadata_invalid", "A10")


def values(f: dict, rows: int, nulls: int, parts) -> list:
    bad = "metadata_invalid"
    validity = next(parts)
    bits = [validity[i // 8] >> i % 8 & 1 for i in range(rows)] if nulls else []
    need(bits.count(0) == nulls, bad, "A13")
    raw = next(parts)
    if f["type"] == "bool":
        out = [bool(raw[i // 8] >> i % 8 & 1) for i in range(rows)]
    elif f["type"] != "utf8":
        out = list(struct.unpack_from(f"<{rows}{'q' if f['type'] == 'int64' else 'Q'}", raw))
    else:
        text, out = next(parts), []
        ends = struct.unpack_from(f"<{rows + 1}i", raw)
        for i in range(rows):
            a, b = ends[i], ends[i + 1]
            need(0 <= a <= b <= len(text) and b - a <= 1 << 30, bad, "A11")
            if nulls and not bits[i]:
                out.append("")
                continue
            try:
                out.append(text[a:b].decode())
            except UnicodeDecodeError:
                raise Refused(bad, "A12") from None
    return [v if not nulls or bits[i] else None for i, v in enumerate(out)]
