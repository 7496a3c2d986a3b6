// Package vectors runs the vectors of the specification and writes the documents they are compared with.
package vectors

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"datasetrt/sampling"
)

// node is a member of a JSON object: tagged scalars, lists of them, and objects of these.
type node = map[string]any

func tag(typ, value string) node { return node{"type": typ, "value": value} }

func tags[T any](typ string, items []T, text func(T) string) node {
	values := make([]any, 0, len(items))
	for _, item := range items {
		values = append(values, text(item))
	}
	return node{"type": typ, "values": values}
}

func digits[T uint8 | uint32 | uint64 | int](n T) string { return strconv.FormatUint(uint64(n), 10) }

func u64[T uint8 | uint32 | uint64 | int](n T) node { return tag("uint64", digits(n)) }
func u64s[T uint8 | uint32 | uint64](n []T) node    { return tags("uint64", n, digits[T]) }
func boolean(b bool) node                           { return tag("bool", strconv.FormatBool(b)) }
func booleans(b []bool) node                        { return tags("bool", b, strconv.FormatBool) }
func text(s string) node                            { return tag("utf8", s) }
func bytesOf(b []byte) node                         { return tag("bytes", hex.EncodeToString(b)) }
func float(f float64) node                          { return tag("float64", fmt.Sprintf("%016x", math.Float64bits(f))) }
func null() node                                    { return tag("null", "") }

func u128(b sampling.Block) node {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(b.High), 64)
	return tag("uint128", n.Or(n, new(big.Int).SetUint64(b.Low)).String())
}

// input reads the "in" of a case. The first thing that isn't as expected is kept in err.
type input struct {
	members map[string]json.RawMessage
	err     error
}

type tagged struct {
	Type   string
	Value  string
	Values []string
}

func (in *input) get(name, typ string) tagged {
	var t tagged
	if err := json.Unmarshal(in.members[name], &t); err != nil || t.Type != typ {
		in.refuse(fmt.Errorf("input %s is no %s", name, typ))
	}
	return t
}

func (in *input) refuse(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *input) has(name string) bool { return in.members[name] != nil }

func (in *input) parse(s string, base int) uint64 {
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		in.refuse(err)
	}
	return n
}

func (in *input) u64(name string) uint64   { return in.parse(in.get(name, "uint64").Value, 10) }
func (in *input) u32(name string) uint32   { return uint32(in.u64(name)) }
func (in *input) text(name string) string  { return in.get(name, "utf8").Value }
func (in *input) boolean(name string) bool { return in.get(name, "bool").Value == "true" }

func (in *input) u64s(name string) []uint64 {
	var list []uint64
	for _, s := range in.get(name, "uint64").Values {
		list = append(list, in.parse(s, 10))
	}
	return list
}

func (in *input) float(name string) float64 {
	return math.Float64frombits(in.parse(in.get(name, "float64").Value, 16))
}

func (in *input) floats(name string) []float64 {
	var list []float64
	for _, s := range in.get(name, "float64").Values {
		list = append(list, math.Float64frombits(in.parse(s, 16)))
	}
	return list
}

func (in *input) hex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		in.refuse(err)
	}
	return b
}

func (in *input) bytes(name string) []byte { return in.hex(in.get(name, "bytes").Value) }

func (in *input) block(name string) sampling.Block {
	n, ok := new(big.Int).SetString(in.get(name, "uint128").Value, 10)
	if !ok || n.BitLen() > 128 {
		in.refuse(fmt.Errorf("input %s is no integer of 128 bits", name))
		return sampling.Block{}
	}
	low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
	return sampling.Block{High: new(big.Int).Rsh(n, 64).Uint64(), Low: low.Uint64()}
}
