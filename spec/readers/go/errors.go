package datasetrt

import (
	"errors"
	"fmt"
	"strings"
)

// Code says what kind of defect was found. The list is closed: section 12 of the format.
type Code string

// The error codes of the format.
const (
	ManifestDamaged    Code = "manifest_damaged"
	VersionUnsupported Code = "version_unsupported"
	FeatureUnsupported Code = "feature_unsupported"
	ManifestInvalid    Code = "manifest_invalid"
	NameInvalid        Code = "name_invalid"
	FileMissing        Code = "file_missing"
	FileSize           Code = "file_size"
	IndexDamaged       Code = "index_damaged"
	IndexInvalid       Code = "index_invalid"
	EntryInvalid       Code = "entry_invalid"
	MetadataDamaged    Code = "metadata_damaged"
	MetadataInvalid    Code = "metadata_invalid"
	ShardDamaged       Code = "shard_damaged"
	ShardInvalid       Code = "shard_invalid"
	ShardMismatch      Code = "shard_mismatch"
	RecordDamaged      Code = "record_damaged"
	ChecksumMismatch   Code = "checksum_mismatch"
	IdentityMismatch   Code = "identity_mismatch"
)

// Error is a cache's defect. Use [errors.As] to get at it.
type Error struct {
	// Code is the format's code of the defect.
	Code Code
	// Check names the check that failed, such as "I3" or "S10".
	Check string
	// File is the file's path inside the cache, with slashes.
	File string
	// Place says where in the file: "entry 5", "batch 0, field \"x\"". It may be empty.
	Place string
	// Detail says what was found and what is allowed.
	Detail string
	// Err is the cause, where another error is it.
	Err error
}

// Error gives file, place, code, check and detail in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Place != "" {
		b.WriteString(": " + e.Place)
	}
	fmt.Fprintf(&b, ": %s (%s): %s", e.Code, e.Check, e.Detail)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap gives the cause, if any.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf gives the code of the first [Error] in err's chain, or "" where there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

var (
	// ErrRange is the error for a sample number that the cache doesn't have.
	ErrRange = errors.New("datasetrt: no such sample")
	// ErrClosed is the error for the use of a closed cache.
	ErrClosed = errors.New("datasetrt: the cache is closed")
)

// fail makes an [Error]; place may be empty.
func fail(code Code, check, file, place, format string, args ...any) error {
	return &Error{Code: code, Check: check, File: file, Place: place, Detail: fmt.Sprintf(format, args...)}
}
