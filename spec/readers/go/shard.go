package datasetrt

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

var (
	shardMagic    = [8]byte{0x89, 'D', 'R', 'T', 'S', '\r', '\n', 0x1A}
	shardEndMagic = [8]byte{0x1A, '\n', '\r', 'S', 'T', 'R', 'D', 0x89}
)

const (
	flagLastOfPart  = 1
	shardFooterUnit = 64
)

// ShardHeader is the header of a shard: section 5.1 of the format.
type ShardHeader struct {
	Codec   uint8
	Align   uint8
	Part    uint64
	First   uint64
	Ordinal uint32
}

// ShardTrailer is the trailer of a shard: section 5.4 of the format.
type ShardTrailer struct {
	Count     uint64
	Footer    uint64
	Size      uint64
	ID        [16]byte
	FooterCRC uint32
	Flags     uint32
	Version   uint32
}

// Record is what the footer of a shard says of a record.
type Record struct {
	StoredLen uint32
	CRC       uint32
	RawLen    uint32
}

// ParseShardHeader makes the checks S6 to S9, but for the comparison with the manifest. file is for messages.
func ParseShardHeader(data [64]byte, file string) (*ShardHeader, error) {
	le := binary.LittleEndian
	if [8]byte(data[:8]) != shardMagic {
		return nil, fail(ShardDamaged, "S6", file, "header", "another magic")
	}
	if crc, want := CRC32C(data[:60]), le.Uint32(data[60:]); crc != want {
		return nil, fail(ShardDamaged, "S6", file, "header", "CRC is %08x, should be %08x", crc, want)
	}
	if version := le.Uint16(data[8:]); version != formatVersion {
		return nil, fail(VersionUnsupported, "S7", file, "header", "version %d was found, this reader knows version 1", version)
	}
	if flags := le.Uint32(data[12:]); flags != 0 {
		return nil, fail(FeatureUnsupported, "S8", file, "header", "this reader knows no required flags, %#x was found", flags)
	}
	if !zero(data[36:60]) {
		return nil, fail(ShardInvalid, "S9", file, "header", "reserved bytes are not zero")
	}
	return &ShardHeader{
		Codec: data[10], Align: data[11], Part: le.Uint64(data[16:]), First: le.Uint64(data[24:]), Ordinal: le.Uint32(data[32:]),
	}, nil
}

// ParseShardTrailer makes the checks S1 and S2, but for the size. file is for messages.
func ParseShardTrailer(data [64]byte, file string) (*ShardTrailer, error) {
	le := binary.LittleEndian
	if [8]byte(data[56:]) != shardEndMagic {
		return nil, fail(ShardDamaged, "S1", file, "trailer", "another magic")
	}
	if crc, want := CRC32C(data[:52]), le.Uint32(data[52:]); crc != want {
		return nil, fail(ShardDamaged, "S2", file, "trailer", "CRC is %08x, should be %08x", crc, want)
	}
	return &ShardTrailer{
		Count: le.Uint64(data[:]), Footer: le.Uint64(data[8:]), Size: le.Uint64(data[16:]), ID: [16]byte(data[24:]),
		FooterCRC: le.Uint32(data[40:]), Flags: le.Uint32(data[44:]), Version: le.Uint32(data[48:]),
	}, nil
}

// ParseShardFooter gives the records of a footer; it is an error where its length isn't that of section 5.3.
func ParseShardFooter(data []byte, count uint64, codec Codec) ([]Record, error) {
	if count > uint64(len(data)) || uint64(len(data)) != footerLen(count, codec) {
		return nil, fmt.Errorf("datasetrt: a footer of %d bytes isn't that of %d records", len(data), count)
	}
	records := make([]Record, count)
	for i := range records {
		records[i] = footerRecord(data, uint64(i), count, codec)
	}
	return records, nil
}

func footerRecord(footer []byte, i, count uint64, codec Codec) Record {
	le := binary.LittleEndian
	r := Record{StoredLen: le.Uint32(footer[8*i:]), CRC: le.Uint32(footer[8*i+4:])}
	r.RawLen = r.StoredLen
	if codec != None {
		r.RawLen = le.Uint32(footer[8*count+4*i:])
	}
	return r
}

// lengthsAllowed is check E4.
func lengthsAllowed(stored, raw uint32) bool {
	return stored == raw || stored < raw && uint64(raw) <= maxCompression*uint64(stored) && raw <= maxCompressed
}

// shard is an opened shard.
type shard struct {
	data    []byte
	info    *Shard
	trailer *ShardTrailer
	header  *ShardHeader // nil before verification
}

// openShard makes the checks S1 to S5.
func openShard(data []byte, info *Shard, codec Codec) (*shard, error) {
	file := info.Path()
	if len(data) < minShardSize {
		return nil, fail(ShardDamaged, "S1", file, "", "%d bytes are too short for a shard", len(data))
	}
	t, err := ParseShardTrailer([64]byte(data[len(data)-shardTrailerLen:]), file)
	switch {
	case err != nil:
		return nil, err
	case t.ID != info.ID:
		return nil, fail(ShardMismatch, "S3", file, "trailer", "id is %x, the manifest means %x", t.ID, info.ID)
	case t.Version != formatVersion:
		return nil, fail(VersionUnsupported, "S4", file, "trailer", "version %d was found, this reader knows version 1", t.Version)
	case t.Flags&^uint32(flagLastOfPart) != 0:
		return nil, fail(ShardInvalid, "S5", file, "trailer", "flags are %#x, bit 0 alone is allowed", t.Flags)
	case t.Count != info.Samples:
		return nil, fail(ShardInvalid, "S5", file, "trailer", "count is %d, the manifest says %d", t.Count, info.Samples)
	case t.Size != info.Size:
		return nil, fail(ShardInvalid, "S5", file, "trailer", "size is %d, the file has %d bytes", t.Size, info.Size)
	}
	if f := info.Size - shardTrailerLen - footerLen(info.Samples, codec); t.Footer != f || f%shardFooterUnit != 0 {
		return nil, fail(ShardInvalid, "S5", file, "trailer", "footer at %d, should be at %d and a multiple of 64", t.Footer, f)
	}
	return &shard{data: data, info: info, trailer: t}, nil
}

// verify makes the checks S6 to S16. number is the shard's place in the manifest, first its first sample.
func (s *shard) verify(c *Cache, number int, first uint64) error {
	file, m := s.info.Path(), c.manifest
	header, err := ParseShardHeader([64]byte(s.data), file)
	if err != nil {
		return err
	}
	if header.Codec != uint8(m.Codec) || 1<<header.Align != m.Alignment {
		return fail(ShardInvalid, "S9", file, "header", "codec %d and alignment 2^%d are not the manifest's", header.Codec, header.Align)
	}
	s.header = header
	footer := s.data[s.trailer.Footer : len(s.data)-shardTrailerLen]
	if crc := CRC32C(footer); crc != s.trailer.FooterCRC {
		return fail(ShardDamaged, "S10", file, "footer", "CRC is %08x, should be %08x", crc, s.trailer.FooterCRC)
	}
	if err := s.checkFooter(footer, m); err != nil {
		return err
	}
	if err := s.checkEntries(footer, c, number, first); err != nil {
		return err
	}
	var buffer []byte
	for i := range s.info.Samples {
		e, raw, err := c.index.entry(first + i)
		if err != nil {
			return err
		}
		if _, buffer, err = s.record(e, raw, first+i, buffer); err != nil {
			return err
		}
	}
	if err := checkWhole(s.data, &s.info.File, file, "S15"); err != nil {
		return err
	}
	return s.checkPadding(footer, m)
}

// checkFooter makes the checks S11 and S12.
func (s *shard) checkFooter(footer []byte, m *Manifest) error {
	file, count := s.info.Path(), s.info.Samples
	used := 8 * count
	if m.Codec != None {
		used = 12 * count
	}
	if !zero(footer[used:]) {
		return fail(ShardInvalid, "S11", file, "footer", "padding is not zero")
	}
	end := uint64(shardHeaderLen)
	for i := range count {
		r := footerRecord(footer, i, count, m.Codec)
		if !lengthsAllowed(r.StoredLen, r.RawLen) {
			return fail(ShardInvalid, "S11", file, fmt.Sprintf("footer, record %d", i), "%d bytes can't be stored as %d", r.RawLen, r.StoredLen)
		}
		end = up(end, m.Alignment) + uint64(r.StoredLen)
	}
	if up(end, shardFooterUnit) != s.trailer.Footer {
		return fail(ShardInvalid, "S11", file, "footer", "records end at %d, the footer begins at %d", end, s.trailer.Footer)
	}
	hash := sha256.New()
	hash.Write(s.data[:shardHeaderLen])
	hash.Write(footer)
	hash.Write(binary.LittleEndian.AppendUint64(nil, count))
	if id := [16]byte(hash.Sum(nil)); id != s.trailer.ID {
		return fail(ShardInvalid, "S12", file, "trailer", "id is %x, the content's is %x", s.trailer.ID, id)
	}
	return nil
}

// checkEntries makes check S13.
func (s *shard) checkEntries(footer []byte, c *Cache, number int, first uint64) error {
	offset := uint64(shardHeaderLen)
	for i := range s.info.Samples {
		r := footerRecord(footer, i, s.info.Samples, c.manifest.Codec)
		offset = up(offset, c.manifest.Alignment)
		e, raw, err := c.index.entry(first + i)
		if err != nil {
			return err
		}
		if want := (Entry{uint32(number), offset, r.StoredLen, r.CRC}); e != want || raw != r.RawLen {
			return fail(EntryInvalid, "S13", indexName, fmt.Sprintf("entry %d", first+i), "is %+v and raw length %d, should be %+v and %d as in %s",
				e, raw, want, r.RawLen, s.info.Path())
		}
		offset += uint64(r.StoredLen)
	}
	return nil
}

// checkPadding makes check S16.
func (s *shard) checkPadding(footer []byte, m *Manifest) error {
	end := uint64(shardHeaderLen)
	check := func(next uint64) error {
		if !zero(s.data[end:next]) {
			return fail(ShardInvalid, "S16", s.info.Path(), fmt.Sprintf("bytes %d..%d", end, next), "padding is not zero")
		}
		return nil
	}
	for i := range s.info.Samples {
		begin := up(end, m.Alignment)
		if err := check(begin); err != nil {
			return err
		}
		end = begin + uint64(footerRecord(footer, i, s.info.Samples, m.Codec).StoredLen)
	}
	return check(s.trailer.Footer)
}

// record makes check S14 and gives the payload. It decodes into buffer, which it may replace by a larger one.
// The entry has passed the checks E1 to E4.
func (s *shard) record(e Entry, raw uint32, sample uint64, buffer []byte) (payload, grown []byte, err error) {
	end := e.Offset + uint64(e.StoredLen)
	payload = s.data[e.Offset:end:end]
	if e.StoredLen != raw {
		if cap(buffer) < int(raw) {
			buffer = make([]byte, max(raw, min(2*uint32(cap(buffer)), 1<<30)))
		}
		stored := payload
		payload = buffer[:raw:raw]
		if err := DecodeLZ4(payload, stored); err != nil {
			return nil, buffer, &Error{Code: RecordDamaged, Check: "S14", File: s.info.Path(), Place: fmt.Sprintf("sample %d", sample), Detail: "doesn't decode", Err: err}
		}
	}
	if crc := CRC32C(payload); crc != e.CRC {
		return nil, buffer, fail(RecordDamaged, "S14", s.info.Path(), fmt.Sprintf("sample %d", sample), "payload has CRC %08x, should have %08x", crc, e.CRC)
	}
	return payload, buffer, nil
}

// checkChain makes check S17.
func checkChain(shards []*shard) error {
	for i, s := range shards {
		h, last := s.header, s.trailer.Flags&flagLastOfPart != 0
		wrong := func(format string, args ...any) error {
			return fail(ShardInvalid, "S17", s.info.Path(), "", format, args...)
		}
		begins := i == 0 || h.Part != shards[i-1].header.Part
		ordinal, first := uint32(0), uint64(0)
		if !begins {
			before := shards[i-1]
			ordinal, first = before.header.Ordinal+1, before.header.First+before.trailer.Count
		} else if i > 0 && h.Part < shards[i-1].header.Part {
			return wrong("part %d comes behind part %d", h.Part, shards[i-1].header.Part)
		}
		if h.Ordinal != ordinal || h.First != first {
			return wrong("ordinal %d and first %d should be %d and %d", h.Ordinal, h.First, ordinal, first)
		}
		ends := i == len(shards)-1 || shards[i+1].header.Part != h.Part
		if last != ends {
			return wrong("flag of the last shard of a part is %t, should be %t", last, ends)
		}
	}
	return nil
}

// checkWhole compares the CRC and SHA-256 of a file with the manifest's.
func checkWhole(data []byte, f *File, path, check string) error {
	if crc := CRC32C(data); crc != f.CRC32C {
		return fail(ChecksumMismatch, check, path, "", "the file's CRC is %08x, the manifest says %08x", crc, f.CRC32C)
	}
	if f.SHA256 == nil {
		return nil
	}
	if sum := sha256.Sum256(data); sum != *f.SHA256 {
		return fail(ChecksumMismatch, check, path, "", "the file's SHA-256 is %x, the manifest says %x", sum, *f.SHA256)
	}
	return nil
}
