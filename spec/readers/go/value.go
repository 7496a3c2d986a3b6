package datasetrt

import "math"

// FieldType is the type of a metadata field. The numbers are those that enter the identity.
type FieldType uint8

// The field types of the format.
const (
	Bool FieldType = iota + 1
	Int64
	Float64
	Utf8
)

var fieldTypes = map[string]FieldType{"bool": Bool, "int64": Int64, "float64": Float64, "utf8": Utf8}

// String gives the type's name in the manifest.
func (t FieldType) String() string {
	for name, u := range fieldTypes {
		if t == u {
			return name
		}
	}
	return "unknown"
}

// Field is a column of the metadata.
type Field struct {
	Name     string
	Type     FieldType
	Nullable bool
	// Description is nil where the manifest has none.
	Description *string
}

// Value is one cell of the metadata. Its accessors give zero, false or the empty text for a null.
type Value struct {
	typ  FieldType
	null bool
	bits uint64
	text []byte
}

// NullValue is a null of type t.
func NullValue(t FieldType) Value { return Value{typ: t, null: true} }

// BoolValue is a value of type [Bool].
func BoolValue(b bool) Value {
	if b {
		return Value{typ: Bool, bits: 1}
	}
	return Value{typ: Bool}
}

// Int64Value is a value of type [Int64].
func Int64Value(i int64) Value { return Value{typ: Int64, bits: uint64(i)} }

// Float64Value is a value of type [Float64]. For NaNs with a payload use [math.Float64frombits].
func Float64Value(f float64) Value { return Value{typ: Float64, bits: math.Float64bits(f)} }

// TextValue is a value of type [Utf8].
func TextValue(s string) Value { return Value{typ: Utf8, text: []byte(s)} }

// Type is the type of the value's field.
func (v Value) Type() FieldType { return v.typ }

// IsNull says whether the value is null.
func (v Value) IsNull() bool { return v.null }

// Bool gives a value of type [Bool].
func (v Value) Bool() bool { return v.typ == Bool && v.bits != 0 }

// Int64 gives a value of type [Int64].
func (v Value) Int64() int64 {
	if v.typ != Int64 {
		return 0
	}
	return int64(v.bits)
}

// Float64 gives a value of type [Float64].
func (v Value) Float64() float64 { return math.Float64frombits(v.Float64Bits()) }

// Float64Bits gives the 64 bits of a value of type [Float64], exact also for NaNs.
func (v Value) Float64Bits() uint64 {
	if v.typ != Float64 {
		return 0
	}
	return v.bits
}

// Bytes gives the UTF-8 of a value of type [Utf8]. They may lie in a mapped file: see the package's comment.
func (v Value) Bytes() []byte { return v.text }

// Text gives a copy of a value of type [Utf8].
func (v Value) Text() string { return string(v.text) }
