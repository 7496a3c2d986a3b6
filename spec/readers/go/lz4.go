package datasetrt

import (
	"encoding/binary"
	"errors"
)

var errLZ4 = errors.New("broken LZ4 block")

// DecodeLZ4 decodes one LZ4 block into dst, which it must fill exactly. It is an error where the block
// ends anywhere but after literals, where an offset is 0 or reaches before dst, and where the output
// has another length. The end-of-block rules for writers are not checked.
func DecodeLZ4(dst, src []byte) error {
	s, d := 0, 0
	for {
		if s >= len(src) {
			return errLZ4
		}
		token := src[s]
		s++

		n := int(token >> 4)
		if n == 15 {
			var ok bool
			if n, s, ok = lz4Length(src, s, len(dst)); !ok {
				return errLZ4
			}
		}
		if n > len(src)-s || n > len(dst)-d {
			return errLZ4
		}
		if n <= 16 && len(src)-s >= 16 && len(dst)-d >= 16 {
			// A copy of fixed size is cheaper than one of n bytes; what is too much is overwritten later.
			copy(dst[d:d+16], src[s:s+16])
		} else {
			copy(dst[d:d+n], src[s:s+n])
		}
		s += n
		d += n
		if s == len(src) {
			if d != len(dst) {
				return errLZ4
			}
			return nil
		}

		if len(src)-s < 2 {
			return errLZ4
		}
		back := int(binary.LittleEndian.Uint16(src[s:]))
		s += 2
		if back == 0 || back > d {
			return errLZ4
		}
		n = int(token & 15)
		if n == 15 {
			var ok bool
			if n, s, ok = lz4Length(src, s, len(dst)); !ok {
				return errLZ4
			}
		}
		n += 4
		if n > len(dst)-d {
			return errLZ4
		}
		// The copied range may overlap its own source: each step doubles what may be copied at once.
		for from, end := d-back, d+n; d < end; {
			d += copy(dst[d:end], dst[from:d])
		}
	}
}

// lz4Length reads the further bytes of a length that began as 15. A length above limit can't be right
// and ends the loop early, so the sum doesn't overflow.
func lz4Length(src []byte, s, limit int) (n, next int, ok bool) {
	n = 15
	for s < len(src) {
		b := src[s]
		s++
		n += int(b)
		if b != 255 {
			return n, s, true
		}
		if n > limit+15 {
			return 0, 0, false
		}
	}
	return 0, 0, false
}
