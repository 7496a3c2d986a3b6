package datasetrt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

const maxInteger = 1<<53 - 1

// soundJSON makes check M7 on data: encoding/json replaces broken UTF-8 and unpaired surrogates silently.
func soundJSON(data []byte) error {
	if !utf8.Valid(data) {
		return fmt.Errorf("not UTF-8")
	}
	if !json.Valid(data) {
		return fmt.Errorf("not JSON")
	}
	if !pairedSurrogates(data) {
		return fmt.Errorf("a text has an unpaired surrogate")
	}
	return nil
}

// pairedSurrogates looks at the escapes of valid JSON; a backslash occurs in texts alone.
func pairedSurrogates(data []byte) bool {
	for {
		i := bytes.IndexByte(data, '\\')
		if i < 0 {
			return true
		}
		data = data[i:]
		unit, ok := escapedUnit(data)
		switch {
		case !ok:
			data = data[2:]
		case unit < 0xD800 || unit > 0xDFFF:
			data = data[6:]
		case unit >= 0xDC00:
			return false
		default:
			low, ok := escapedUnit(data[6:])
			if !ok || low < 0xDC00 || low > 0xDFFF {
				return false
			}
			data = data[12:]
		}
	}
}

func escapedUnit(data []byte) (uint64, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return unit, err == nil
}

// object is a JSON object whose members are asked for by exact name. The first failure is kept in err.
// Of two members of one name, which the format leaves open, the last counts.
type object struct {
	members map[string]json.RawMessage
	path    string
	check   string // the check that a failure breaks
	err     *error
}

func newObject(raw json.RawMessage, path string, err *error) object {
	o := object{path: path, check: "M10", err: err}
	if !isKind(raw, '{') {
		o.fail("", "should be an object")
		return o
	}
	if e := json.Unmarshal(raw, &o.members); e != nil {
		o.fail("", e.Error())
	}
	return o
}

func isKind(raw json.RawMessage, first byte) bool { return len(raw) > 0 && raw[0] == first }

func (o object) fail(name, problem string) {
	if *o.err != nil {
		return
	}
	path := o.path
	if name != "" && path != "" {
		path += "."
	}
	*o.err = fail(ManifestInvalid, o.check, manifestName, path+name, "%s", problem)
}

func (o object) has(name string) bool {
	_, ok := o.members[name]
	return ok
}

func (o object) get(name string) json.RawMessage {
	raw, ok := o.members[name]
	if !ok {
		o.fail(name, "is missing")
	}
	return raw
}

func (o object) object(name string) object {
	path := name
	if o.path != "" {
		path = o.path + "." + name
	}
	return newObject(o.get(name), path, o.err)
}

func (o object) list(name string) []json.RawMessage {
	raw := o.get(name)
	if !isKind(raw, '[') {
		o.fail(name, "should be a list")
		return nil
	}
	var list []json.RawMessage
	if e := json.Unmarshal(raw, &list); e != nil {
		o.fail(name, e.Error())
	}
	return list
}

func (o object) text(name string) string {
	raw := o.get(name)
	if !isKind(raw, '"') {
		o.fail(name, "should be a text")
		return ""
	}
	var s string
	if e := json.Unmarshal(raw, &s); e != nil {
		o.fail(name, e.Error())
	}
	return s
}

// optionalText gives nil where the member is absent.
func (o object) optionalText(name string) *string {
	if !o.has(name) {
		return nil
	}
	s := o.text(name)
	return &s
}

func (o object) texts(name string) []string {
	var texts []string
	for i, raw := range o.list(name) {
		item := object{members: map[string]json.RawMessage{"": raw}, path: fmt.Sprintf("%s[%d]", name, i), check: o.check, err: o.err}
		texts = append(texts, item.text(""))
	}
	return texts
}

func (o object) boolean(name string) bool {
	switch raw := o.get(name); string(raw) {
	case "true":
		return true
	case "false":
	default:
		o.fail(name, "should be true or false")
	}
	return false
}

// integer takes plain digits alone: forms such as 1.0 and -0, which the format leaves open, are refused.
func (o object) integer(name string, least, most uint64) uint64 {
	n, err := strconv.ParseUint(string(o.get(name)), 10, 64)
	if err != nil || n < least || n > most {
		o.fail(name, fmt.Sprintf("should be an integer from %d to %d", least, most))
		return 0
	}
	return n
}

// digits gives lower-case hexadecimal digits as bytes; the text must have two for each byte of dst.
func (o object) digits(name string, dst []byte) {
	if !parseHex(dst, o.text(name)) {
		o.fail(name, fmt.Sprintf("should be %d lower-case hexadecimal digits", 2*len(dst)))
	}
}

func parseHex(dst []byte, s string) bool {
	if len(s) != 2*len(dst) {
		return false
	}
	for i := range dst {
		dst[i] = 0
		for _, c := range []byte(s[2*i : 2*i+2]) {
			switch {
			case c >= '0' && c <= '9':
				c -= '0'
			case c >= 'a' && c <= 'f':
				c -= 'a' - 10
			default:
				return false
			}
			dst[i] = dst[i]<<4 | c
		}
	}
	return true
}
