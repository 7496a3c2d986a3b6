package datasetrt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"regexp"
	"strings"
)

var (
	shardNameForm = regexp.MustCompile(`\A[0-9][0-9a-z-]{5,99}\z`)
	createdForm   = regexp.MustCompile(`\A[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?Z\z`)
)

// ShardNameAllowed says whether section 3 of the format allows the name.
func ShardNameAllowed(name string) bool { return shardNameForm.MatchString(name) }

// FieldNameAllowed says whether section 8.3 of the format allows the name.
func FieldNameAllowed(name string) bool {
	switch name {
	case "weight", "cache_id", "sample_id":
		return false
	}
	return len(name) <= maxFieldName && !strings.Contains(name, "\x00")
}

// parseMembers makes the checks M7 to M15.
func parseMembers(data []byte) (*Manifest, error) {
	if err := soundJSON(data); err != nil {
		return nil, fail(ManifestInvalid, "M7", manifestName, "", "%v", err)
	}
	var err error
	top := newObject(json.RawMessage(data), "", &err)
	m := &Manifest{}
	features := top
	features.check = "M8"
	required := features.texts("required")
	m.Optional = features.texts("optional")
	if err != nil {
		return nil, err
	}
	if len(required) > 0 {
		return nil, fail(FeatureUnsupported, "M9", manifestName, "required", "this reader doesn't know %q", required)
	}
	rawFields, rawShards := m.members(top)
	m.fieldMembers(rawFields, &err)
	m.shardMembers(rawShards, &err)
	if err != nil {
		return nil, err
	}
	if err := m.checkNames(len(rawFields), len(rawShards)); err != nil {
		return nil, err
	}
	left := m.Samples
	for i := range m.Shards {
		if m.Shards[i].Samples > left {
			return nil, fail(ManifestInvalid, "M15", manifestName, "shards", "have more samples than the cache's %d", m.Samples)
		}
		left -= m.Shards[i].Samples
	}
	if left != 0 {
		return nil, fail(ManifestInvalid, "M15", manifestName, "shards", "have %d samples less than the cache's %d", left, m.Samples)
	}
	return m, nil
}

// members reads all members but the items of fields and shards, which it hands back.
func (m *Manifest) members(top object) (fields, shards []json.RawMessage) {
	top.digits("identity", m.Identity[:])
	source := top.object("source")
	m.Source.Name = source.text("name")
	if string(source.get("fingerprint")) != "null" {
		m.Source.Fingerprint = source.optionalText("fingerprint")
	}
	if m.Created = top.text("created"); !createdForm.MatchString(m.Created) {
		top.fail("created", "should be a date and time as YYYY-MM-DDThh:mm:ssZ")
	}
	m.Writer = top.text("writer")
	m.Samples = top.integer("samples", 1, maxInteger)
	m.PayloadBytes = top.integer("payload_bytes", 0, maxInteger)
	m.StoredBytes = top.integer("stored_bytes", 0, maxInteger)
	codec := top.object("codec").text("name")
	var ok bool
	if m.Codec, ok = codecs[codec]; !ok {
		top.fail("codec.name", fmt.Sprintf("%q should be none or lz4", codec))
	}
	m.Alignment = top.integer("alignment", 1, 4096)
	if bits.OnesCount64(m.Alignment) != 1 {
		top.fail("alignment", "should be a power of two")
	}
	if top.has("user") {
		user := top.object("user")
		m.User = make(map[string]string, len(user.members))
		for name := range user.members {
			m.User[name] = user.text(name)
		}
	}
	m.MediaType = top.optionalText("media_type")
	m.Metadata = fileMembers(top.object("metadata"), metadataName)
	m.Index = fileMembers(top.object("index"), indexName)
	return top.list("fields"), top.list("shards")
}

// fileMembers reads a file object. An empty name allows every name.
func fileMembers(o object, name string) File {
	f := File{Name: o.text("name"), Size: o.integer("size", 0, maxInteger)}
	if name != "" && f.Name != name {
		o.fail("name", fmt.Sprintf("%q should be %q", f.Name, name))
	}
	var crc [4]byte
	o.digits("crc32c", crc[:])
	f.CRC32C = binary.BigEndian.Uint32(crc[:])
	if o.has("sha256") {
		f.SHA256 = new([32]byte)
		o.digits("sha256", f.SHA256[:])
	}
	return f
}

func (m *Manifest) fieldMembers(list []json.RawMessage, err *error) {
	if len(list) > maxFields {
		return // M11, which comes after M10
	}
	for i, raw := range list {
		o := newObject(raw, fmt.Sprintf("fields[%d]", i), err)
		f := Field{Name: o.text("name"), Nullable: o.boolean("nullable"), Description: o.optionalText("description")}
		var ok bool
		if f.Type, ok = fieldTypes[o.text("type")]; !ok {
			o.fail("type", "should be bool, int64, float64 or utf8")
		}
		m.Fields = append(m.Fields, f)
	}
}

func (m *Manifest) shardMembers(list []json.RawMessage, err *error) {
	if len(list) > maxShards {
		return // M11, which comes after M10
	}
	for i, raw := range list {
		if *err != nil {
			return
		}
		o := newObject(raw, fmt.Sprintf("shards[%d]", i), err)
		s := Shard{File: fileMembers(o, ""), Samples: o.integer("samples", 1, maxInteger)}
		o.digits("id", s.ID[:])
		least := shardHeaderLen + shardTrailerLen + footerLen(s.Samples, m.Codec)
		if s.Size < least || s.Size >= maxShardSize {
			o.fail("size", fmt.Sprintf("%d should be at least %d and less than 2^40", s.Size, least))
		}
		m.Shards = append(m.Shards, s)
	}
}

// checkNames makes the checks M11 to M14.
func (m *Manifest) checkNames(fields, shards int) error {
	if fields > maxFields || shards < 1 || shards > maxShards {
		return fail(ManifestInvalid, "M11", manifestName, "", "%d fields (0 .. 4096 are allowed), %d shards (1 .. 2^24 are allowed)", fields, shards)
	}
	for i, f := range m.Fields {
		if !FieldNameAllowed(f.Name) {
			return fail(NameInvalid, "M12", manifestName, fmt.Sprintf("fields[%d].name", i), "%.80q is not allowed", f.Name)
		}
	}
	for i, s := range m.Shards {
		if !ShardNameAllowed(s.Name) {
			return fail(NameInvalid, "M13", manifestName, fmt.Sprintf("shards[%d].name", i), "%.80q is not allowed", s.Name)
		}
	}
	names := make(map[string]bool, max(len(m.Fields), len(m.Shards)))
	for i, f := range m.Fields {
		if names[f.Name] {
			return fail(ManifestInvalid, "M14", manifestName, fmt.Sprintf("fields[%d].name", i), "%.80q comes twice", f.Name)
		}
		names[f.Name] = true
	}
	clear(names)
	for i, s := range m.Shards {
		if names[s.Name] {
			return fail(ManifestInvalid, "M14", manifestName, fmt.Sprintf("shards[%d].name", i), "%q comes twice", s.Name)
		}
		names[s.Name] = true
	}
	return nil
}
