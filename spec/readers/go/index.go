package datasetrt

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	indexName      = "index.bin"
	indexHeaderLen = 128
	sectionRowLen  = 32
	entryLen       = 16
	flagIgnorable  = 1

	kindEntries      = 1
	kindRawLengths   = 2
	kindEntrySums    = 17
	kindRawSums      = 18
	kindMetadataSums = 32
	firstSummedKind  = 16
)

var indexMagic = [8]byte{0x89, 'D', 'R', 'T', 'I', '\r', '\n', 0x1A}

// IndexHeader is the header of index.bin: section 6.1 of the format.
type IndexHeader struct {
	Codec    uint8
	Align    uint8
	Samples  uint64
	Shards   uint64
	Size     uint64
	Identity [32]byte
	Sections []Section
}

// Section is a row of the section table of index.bin.
type Section struct {
	Kind   uint32
	Flags  uint32
	Offset uint64
	Length uint64
	CRC    uint32
}

// Entry says where a record is: section 6.3 of the format.
type Entry struct {
	Shard     uint32
	Offset    uint64
	StoredLen uint32
	CRC       uint32
}

// ParseEntry reads the 16 bytes of an entry. It checks nothing: every value is one of the form.
func ParseEntry(data [16]byte) Entry {
	position := binary.LittleEndian.Uint64(data[:])
	return Entry{
		Shard: uint32(position >> 40), Offset: position & (1<<40 - 1),
		StoredLen: binary.LittleEndian.Uint32(data[8:]), CRC: binary.LittleEndian.Uint32(data[12:]),
	}
}

func knownKind(kind uint32) bool {
	switch kind {
	case kindEntries, kindRawLengths, kindEntrySums, kindRawSums, kindMetadataSums:
		return true
	}
	return false
}

// ParseIndexHeader makes the checks I1 to I6, which need nothing but the header and the section table.
// data may be the whole file.
func ParseIndexHeader(data []byte) (*IndexHeader, error) {
	le := binary.LittleEndian
	if len(data) < indexHeaderLen || [8]byte(data) != indexMagic {
		return nil, fail(IndexDamaged, "I1", indexName, "header", "too short, or another magic")
	}
	count := uint64(le.Uint32(data[40:]))
	end := indexHeaderLen + sectionRowLen*count
	if end > uint64(len(data)) {
		return nil, fail(IndexDamaged, "I2", indexName, "header", "%d sections don't fit into the file", count)
	}
	table := data[indexHeaderLen:end]
	crc := CRC32C(append(append(make([]byte, 0, 124+len(table)), data[:124]...), table...))
	if want := le.Uint32(data[124:]); crc != want {
		return nil, fail(IndexDamaged, "I3", indexName, "header", "CRC is %08x, should be %08x", crc, want)
	}
	if version := le.Uint16(data[8:]); version != formatVersion {
		return nil, fail(VersionUnsupported, "I4", indexName, "header", "version %d was found, this reader knows version 1", version)
	}
	h := &IndexHeader{
		Codec: data[10], Align: data[11], Samples: le.Uint64(data[16:]), Shards: le.Uint64(data[24:]), Size: le.Uint64(data[32:]),
		Identity: [32]byte(data[48:]), Sections: make([]Section, 0, count),
	}
	reserved := zero(data[44:48]) && zero(data[80:124])
	for row := table; len(row) > 0; row = row[sectionRowLen:] {
		reserved = reserved && zero(row[28:32])
		h.Sections = append(h.Sections, Section{
			Kind: le.Uint32(row), Flags: le.Uint32(row[4:]), Offset: le.Uint64(row[8:]), Length: le.Uint64(row[16:]), CRC: le.Uint32(row[24:]),
		})
	}
	if !reserved {
		return nil, fail(IndexInvalid, "I5", indexName, "header", "reserved bytes are not zero")
	}
	if flags := le.Uint32(data[12:]); flags != 0 {
		return nil, fail(FeatureUnsupported, "I6", indexName, "header", "this reader knows no required flags, %#x was found", flags)
	}
	return h, nil
}

// index is an opened index.bin.
type index struct {
	data         []byte
	header       *IndexHeader
	samples      uint64
	entries      *summed
	rawLengths   *summed // nil without a codec
	metadataSums []byte
}

// openIndex makes the checks I1 to I13.
func openIndex(data []byte, m *Manifest) (*index, error) {
	h, err := ParseIndexHeader(data)
	if err != nil {
		return nil, err
	}
	invalid := func(check, place, format string, args ...any) error {
		return fail(IndexInvalid, check, indexName, place, format, args...)
	}
	align := uint8(bits.TrailingZeros64(m.Alignment))
	if h.Codec != uint8(m.Codec) || h.Align != align || h.Samples != m.Samples || h.Shards != uint64(len(m.Shards)) {
		return nil, invalid("I7", "header", "codec, alignment, samples or shards are not the manifest's")
	}
	if h.Size != uint64(len(data)) {
		return nil, invalid("I7", "header", "size is %d, the file has %d bytes", h.Size, len(data))
	}
	if h.Identity != m.Identity {
		return nil, invalid("I8", "header", "identity is %x, the manifest's is %x", h.Identity, m.Identity)
	}
	for i, s := range h.Sections {
		place := fmt.Sprintf("section row %d", i)
		if i > 0 && s.Kind <= h.Sections[i-1].Kind {
			return nil, invalid("I9", place, "kind %d doesn't ascend", s.Kind)
		}
		if s.Flags&^uint32(flagIgnorable) != 0 || s.Flags != 0 && knownKind(s.Kind) {
			return nil, invalid("I9", place, "flags %#x are not allowed for kind %d", s.Flags, s.Kind)
		}
		if s.Kind < firstSummedKind && s.CRC != 0 {
			return nil, invalid("I9", place, "kind %d should have CRC 0", s.Kind)
		}
	}
	for i, s := range h.Sections {
		if !knownKind(s.Kind) && s.Flags&flagIgnorable == 0 {
			return nil, fail(FeatureUnsupported, "I10", indexName, fmt.Sprintf("section row %d", i), "kind %d is unknown and may not be ignored", s.Kind)
		}
	}
	end := uint64(indexHeaderLen + sectionRowLen*len(h.Sections))
	for i, s := range h.Sections {
		if s.Offset != up(end, 64) || s.Offset > h.Size || s.Length > h.Size-s.Offset {
			return nil, invalid("I11", fmt.Sprintf("section row %d", i), "bytes %d and %d following are not its place in the file", s.Offset, s.Length)
		}
		end = s.Offset + s.Length
	}
	if end != h.Size {
		return nil, invalid("I11", "", "the last section ends at %d, the file at %d", end, h.Size)
	}
	x := &index{data: data, header: h, samples: m.Samples}
	return x, x.openSections(m)
}

// openSections makes the checks I12 and I13.
func (x *index) openSections(m *Manifest) error {
	blocks := func(n uint64) uint64 { return (n + sumBlock - 1) / sumBlock }
	want := map[uint32]uint64{
		kindEntries:      entryLen * m.Samples,
		kindEntrySums:    4 * blocks(entryLen*m.Samples),
		kindMetadataSums: 4 * blocks(m.Metadata.Size),
	}
	if m.Codec != None {
		want[kindRawLengths] = 4 * m.Samples
		want[kindRawSums] = 4 * blocks(4*m.Samples)
	}
	found := map[uint32][]byte{}
	for _, s := range x.header.Sections {
		if !knownKind(s.Kind) {
			continue
		}
		if n, ok := want[s.Kind]; !ok || n != s.Length {
			return fail(IndexInvalid, "I12", indexName, fmt.Sprintf("section %d", s.Kind), "is not expected, or not with %d bytes", s.Length)
		}
		found[s.Kind] = x.data[s.Offset : s.Offset+s.Length]
	}
	if len(found) != len(want) {
		return fail(IndexInvalid, "I12", indexName, "", "%d of %d sections are there", len(found), len(want))
	}
	for _, s := range x.header.Sections {
		if s.Kind < firstSummedKind || !knownKind(s.Kind) {
			continue
		}
		if crc := CRC32C(found[s.Kind]); crc != s.CRC {
			return fail(IndexDamaged, "I13", indexName, fmt.Sprintf("section %d", s.Kind), "CRC is %08x, should be %08x", crc, s.CRC)
		}
	}
	x.entries = newSummed(found[kindEntries], found[kindEntrySums], IndexDamaged, "I14", indexName, "section 1")
	if m.Codec != None {
		x.rawLengths = newSummed(found[kindRawLengths], found[kindRawSums], IndexDamaged, "I14", indexName, "section 2")
	}
	x.metadataSums = found[kindMetadataSums]
	return nil
}

// entry gives entry i and its raw_len after check I14; i is below samples.
func (x *index) entry(i uint64) (Entry, uint32, error) {
	if err := x.entries.need(i*entryLen, entryLen); err != nil {
		return Entry{}, 0, err
	}
	e := ParseEntry([16]byte(x.entries.data[i*entryLen:]))
	if x.rawLengths == nil {
		return e, e.StoredLen, nil
	}
	if err := x.rawLengths.need(i*4, 4); err != nil {
		return Entry{}, 0, err
	}
	return e, binary.LittleEndian.Uint32(x.rawLengths.data[i*4:]), nil
}

// checkPadding makes check I16.
func (x *index) checkPadding() error {
	end := uint64(indexHeaderLen + sectionRowLen*len(x.header.Sections))
	for _, s := range x.header.Sections {
		if !zero(x.data[end:s.Offset]) {
			return fail(IndexInvalid, "I16", indexName, fmt.Sprintf("before section %d", s.Kind), "padding is not zero")
		}
		end = s.Offset + s.Length
	}
	return nil
}
