package datasetrt

import (
	"bytes"
	"crypto/sha256"
	"strconv"
)

const (
	manifestName   = "manifest.json"
	manifestPrefix = `{"format":"dataset_rt.cache","version":`
	tailPrefix     = `,"sha256":"`
	tailSuffix     = "\"}\n"
	tailLen        = len(tailPrefix) + 64 + len(tailSuffix)
)

// Limits of section 4 of the format.
const (
	maxShards       = 1 << 24
	maxShardSize    = 1 << 40
	maxFields       = 4096
	maxFieldName    = 1024
	maxText         = 1 << 30
	maxCompressed   = 0x7E000000
	maxCompression  = 255
	minShardSize    = 136
	formatVersion   = 1
	shardHeaderLen  = 64
	shardTrailerLen = 64
)

// Codec says how records are stored.
type Codec uint8

// The codecs of the format.
const (
	None Codec = iota
	LZ4
)

var codecs = map[string]Codec{"none": None, "lz4": LZ4}

// String gives the codec's name in the manifest.
func (c Codec) String() string {
	for name, d := range codecs {
		if c == d {
			return name
		}
	}
	return "unknown"
}

// Manifest is the content of manifest.json: section 8 of the format.
type Manifest struct {
	Optional     []string
	Identity     [32]byte
	Source       Source
	Created      string
	Writer       string
	Samples      uint64
	PayloadBytes uint64
	StoredBytes  uint64
	Fields       []Field
	Codec        Codec
	Alignment    uint64
	// User is nil where the manifest has none.
	User map[string]string
	// MediaType is nil where the manifest has none.
	MediaType *string
	Metadata  File
	Index     File
	Shards    []Shard
}

// Source says what a cache was made of.
type Source struct {
	Name string
	// Fingerprint is nil where it is null.
	Fingerprint *string
}

// File describes a file of the cache.
type File struct {
	Name   string
	Size   uint64
	CRC32C uint32
	// SHA256 is nil where the manifest has none.
	SHA256 *[32]byte
}

// Shard describes a shard file.
type Shard struct {
	File
	Samples uint64
	ID      [16]byte
}

// Path is the shard's path inside the cache.
func (s *Shard) Path() string { return "shards/" + s.Name + ".bin" }

// footerLen is the length of the shard's footer (section 5.3).
func footerLen(samples uint64, codec Codec) uint64 {
	if codec == None {
		return samples * 8
	}
	return up(samples*12, 8)
}

// CheckManifestEnvelope makes the checks M2 to M6 on the bytes of a manifest: those of every version of the format.
func CheckManifestEnvelope(data []byte) error {
	damaged := func(check, detail string) error { return fail(ManifestDamaged, check, manifestName, "", "%s", detail) }
	if len(data) < tailLen {
		return damaged("M2", "too short for its last 78 bytes")
	}
	body, tail := data[:len(data)-tailLen], data[len(data)-tailLen:]
	var want [32]byte
	digits := string(tail[len(tailPrefix) : len(tailPrefix)+64])
	if !bytes.HasPrefix(tail, []byte(tailPrefix)) || !bytes.HasSuffix(tail, []byte(tailSuffix)) || !parseHex(want[:], digits) {
		return damaged("M2", "doesn't end with its digest")
	}
	if sha256.Sum256(body) != want {
		return damaged("M3", "has another digest than its last bytes say")
	}
	rest, ok := bytes.CutPrefix(body, []byte(manifestPrefix))
	if !ok {
		return damaged("M4", "doesn't begin as a manifest")
	}
	digitsEnd := 0
	for digitsEnd < len(rest) && rest[digitsEnd] >= '0' && rest[digitsEnd] <= '9' {
		digitsEnd++
	}
	version, err := strconv.ParseUint(string(rest[:digitsEnd]), 10, 64)
	leadingZero := digitsEnd > 1 && rest[0] == '0'
	// The comma is one of its own: that of the tail doesn't serve.
	comma := digitsEnd < len(rest) && rest[digitsEnd] == ','
	if err != nil || version > maxInteger || leadingZero || !comma {
		return fail(ManifestInvalid, "M5", manifestName, "version", "should be an integer up to 2^53-1 and a comma")
	}
	if version != formatVersion {
		return fail(VersionUnsupported, "M6", manifestName, "version", "version %d was found, this reader knows version 1", version)
	}
	return nil
}

// ParseManifest makes the checks M2 to M15 on the bytes of a manifest.
func ParseManifest(data []byte) (*Manifest, error) {
	if err := CheckManifestEnvelope(data); err != nil {
		return nil, err
	}
	return parseMembers(data)
}
