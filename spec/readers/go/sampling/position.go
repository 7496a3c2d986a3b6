package sampling

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Position is a saved position: the state of a stream between two windows or inside one.
type Position struct {
	Mode        Mode
	Seed        uint64
	Stream      uint32
	Rows        uint64
	WindowStart uint64
	WindowLen   uint64
	Delivered   uint64
	Next        uint64
	// EpochLen is nil where windows follow the table.
	EpochLen   *uint64
	Caches     string
	CacheHeads []string
	TableRows  string
	// TableWeights is empty in the modes without weights.
	TableWeights string
}

// PositionError says which member of a saved position was refused.
type PositionError struct{ Member, Reason string }

func (e *PositionError) Error() string {
	return fmt.Sprintf("sampling: saved position: %s %s", e.Member, e.Reason)
}

const (
	positionFormat    = "dataset_rt.position"
	positionVersion   = "1"
	positionAlgorithm = "1"
	maxHeads          = 64
)

var positionMembers = []string{
	"format", "version", "algorithm", "mode", "seed", "stream", "rows", "window_start", "window_len", "delivered", "next",
	"epoch_len", "caches", "cache_heads", "table",
}

type positionReader struct {
	members map[string]json.RawMessage
	err     *PositionError
}

// ParsePosition reads a saved position and refuses one whose form is wrong with a [PositionError]. Members are
// looked at in the order of the format's table, unknown ones last.
func ParsePosition(data []byte) (*Position, error) {
	r := &positionReader{}
	if err := json.Unmarshal(data, &r.members); err != nil || r.members == nil {
		return nil, &PositionError{"", "is not a JSON object"}
	}
	r.equal("format", strconv.Quote(positionFormat))
	r.equal("version", positionVersion)
	r.equal("algorithm", positionAlgorithm)
	p := &Position{Mode: Mode(r.text("mode"))}
	if !slices.Contains([]Mode{Ordered, Weighted, PermutationMode, WeightedOrdering}, p.Mode) {
		r.refuse("mode", "is none of the modes")
	}
	p.Seed = r.number("seed", 0, ^uint64(0))
	stream, err := strconv.ParseUint(string(r.get("stream")), 10, 32)
	if err != nil {
		r.refuse("stream", "should be an integer below 2^32")
	}
	p.Stream = uint32(stream)
	p.Rows = r.number("rows", 1, maxRows)
	p.WindowStart = r.number("window_start", 0, endOfStream)
	p.WindowLen = r.number("window_len", 0, endOfStream-min(p.WindowStart, endOfStream))
	p.Delivered = r.number("delivered", 0, p.WindowLen)
	p.Next = r.number("next", p.WindowStart+p.WindowLen, endOfStream)
	if string(r.get("epoch_len")) != "null" {
		n := r.number("epoch_len", 1, endOfStream-1)
		p.EpochLen = &n
	}
	p.Caches = r.digest("caches", 64)
	r.heads(p)
	r.table(p)
	r.unknown(positionMembers)
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

func (r *positionReader) refuse(member, reason string) {
	if r.err == nil {
		r.err = &PositionError{member, reason}
	}
}

func (r *positionReader) get(name string) json.RawMessage {
	raw, ok := r.members[name]
	if !ok {
		r.refuse(name, "is missing")
	}
	return raw
}

// equal compares a member with a JSON value; a text may be written with escapes.
func (r *positionReader) equal(name, want string) {
	raw := r.get(name)
	if want[0] == '"' {
		raw = json.RawMessage(strconv.Quote(r.text(name)))
	}
	if string(raw) != want {
		r.refuse(name, "is another than "+want)
	}
}

func (r *positionReader) text(name string) string {
	raw := r.get(name)
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		r.refuse(name, "should be a text")
	}
	return s
}

func (r *positionReader) number(name string, least, most uint64) uint64 {
	s := r.text(name)
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || s != strconv.FormatUint(n, 10) || n < least || n > most {
		r.refuse(name, fmt.Sprintf("should be digits of a number from %d to %d", least, most))
		return 0
	}
	return n
}

func isHex(s string, n int) bool {
	return len(s) == n && !slices.ContainsFunc([]byte(s), func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

func (r *positionReader) digest(name string, n int) string {
	s := r.text(name)
	if !isHex(s, n) {
		r.refuse(name, fmt.Sprintf("should be %d lower-case hexadecimal digits", n))
	}
	return s
}

func (r *positionReader) heads(p *Position) {
	var list []*string
	raw := r.get("cache_heads")
	if json.Unmarshal(raw, &list) != nil || len(list) < 1 || len(list) > maxHeads {
		r.refuse("cache_heads", "should be a list of 1 .. 64 texts")
		return
	}
	for _, head := range list {
		if head == nil || !isHex(*head, 8) {
			r.refuse("cache_heads", "should be lists of 8 lower-case hexadecimal digits")
			return
		}
		p.CacheHeads = append(p.CacheHeads, *head)
	}
}

// table reads the digests of the table; every defect in it is one of the member "table".
func (r *positionReader) table(p *Position) {
	sub := &positionReader{}
	if json.Unmarshal(r.get("table"), &sub.members) != nil || sub.members == nil {
		r.refuse("table", "should be an object")
		return
	}
	p.TableRows = sub.digest("rows", 64)
	if p.Mode == Weighted || p.Mode == WeightedOrdering {
		p.TableWeights = sub.digest("weights", 64)
	} else {
		sub.equal("weights", "null")
	}
	sub.unknown([]string{"rows", "weights"})
	if sub.err != nil {
		r.refuse("table", "has a wrong member: "+sub.err.Member+" "+sub.err.Reason)
	}
}

func (r *positionReader) unknown(known []string) {
	for name := range r.members {
		if !slices.Contains(known, name) {
			r.refuse(name, "is unknown")
		}
	}
}

// Match refuses a position that was saved of another dataset: it names the first member that differs. want holds
// what the dataset has; its window members are not looked at.
func (p *Position) Match(want *Position) error {
	switch {
	case p.Caches != want.Caches:
		reason := "are others"
		for i, head := range p.CacheHeads {
			if i >= len(want.CacheHeads) || want.CacheHeads[i] != head {
				reason = fmt.Sprintf("differ from cache %d on", i)
				break
			}
		}
		return &PositionError{"caches", reason}
	case p.Rows != want.Rows:
		return &PositionError{"rows", fmt.Sprintf("are %d, the dataset has %d", p.Rows, want.Rows)}
	case p.Mode != want.Mode:
		return &PositionError{"mode", fmt.Sprintf("is %s, the dataset's is %s", p.Mode, want.Mode)}
	case p.Seed != want.Seed:
		return &PositionError{"seed", "is another"}
	case p.Stream != want.Stream:
		return &PositionError{"stream", "is another"}
	case p.TableRows != want.TableRows:
		return &PositionError{"table.rows", "is another"}
	case p.TableWeights != want.TableWeights && (p.Mode == Weighted || p.Mode == WeightedOrdering):
		return &PositionError{"table.weights", "is another"}
	}
	return nil
}

// MarshalJSON writes the saved form.
func (p *Position) MarshalJSON() ([]byte, error) {
	digits := func(n uint64) string { return strconv.FormatUint(n, 10) }
	var epoch, weights *string
	if p.EpochLen != nil {
		s := digits(*p.EpochLen)
		epoch = &s
	}
	if p.TableWeights != "" {
		weights = &p.TableWeights
	}
	return json.Marshal(map[string]any{
		"format": positionFormat, "version": 1, "algorithm": 1, "mode": p.Mode, "seed": digits(p.Seed), "stream": p.Stream,
		"rows": digits(p.Rows), "window_start": digits(p.WindowStart), "window_len": digits(p.WindowLen),
		"delivered": digits(p.Delivered), "next": digits(p.Next), "epoch_len": epoch, "caches": p.Caches, "cache_heads": p.CacheHeads,
		"table": map[string]any{"rows": p.TableRows, "weights": weights},
	})
}
