package datasetrt

import (
	"crypto/sha256"
	"encoding/binary"
)

const identityBlock = 65536

// Content is what the identity of a cache is made of (section 9 of the format).
type Content interface {
	// Payload gives length and CRC of payload i.
	Payload(i uint64) (rawLen, crc uint32, err error)
	// Value puts the value of field j in row i into v.
	Value(i uint64, j int, v *Value) error
}

// Identity computes a cache's identity. Rows of one field are asked for in ascending order within 65,536 samples.
func Identity(samples uint64, fields []Field, content Content) ([32]byte, error) {
	le := binary.LittleEndian
	head := append([]byte("dataset_rt content 1"), 0)
	head = le.AppendUint64(head, samples)
	head = le.AppendUint32(head, uint32(len(fields)))
	for _, f := range fields {
		head = le.AppendUint32(head, uint32(len(f.Name)))
		head = append(head, f.Name...)
		head = append(head, byte(f.Type), 0)
		if f.Nullable {
			head[len(head)-1] = 1
		}
	}
	hash := sha256.New()
	hash.Write(head)
	for begin := uint64(0); begin < samples; begin += identityBlock {
		sum, err := blockDigest(begin, min(begin+identityBlock, samples), fields, content)
		if err != nil {
			return [32]byte{}, err
		}
		hash.Write(sum[:])
	}
	return [32]byte(hash.Sum(nil)), nil
}

func blockDigest(begin, end uint64, fields []Field, content Content) ([32]byte, error) {
	le, hash := binary.LittleEndian, sha256.New()
	buffer := make([]byte, 0, 8*identityBlock)
	flush := func() {
		hash.Write(buffer)
		buffer = buffer[:0]
	}
	for i := begin; i < end; i++ {
		length, crc, err := content.Payload(i)
		if err != nil {
			return [32]byte{}, err
		}
		buffer = le.AppendUint32(le.AppendUint32(buffer, length), crc)
	}
	flush()
	var v Value
	each := func(j int, do func()) error {
		for i := begin; i < end; i++ {
			if err := content.Value(i, j, &v); err != nil {
				return err
			}
			do()
		}
		flush()
		return nil
	}
	for j, f := range fields {
		if f.Nullable {
			if err := each(j, func() { buffer = append(buffer, bit(!v.null)) }); err != nil {
				return [32]byte{}, err
			}
		}
		var err error
		switch f.Type {
		case Bool:
			err = each(j, func() { buffer = append(buffer, bit(!v.null && v.bits != 0)) })
		case Int64, Float64:
			err = each(j, func() {
				if v.null {
					v.bits = 0
				}
				buffer = le.AppendUint64(buffer, v.bits)
			})
		default:
			err = each(j, func() { buffer = le.AppendUint32(buffer, uint32(len(v.text))) })
			if err == nil {
				err = each(j, func() { hash.Write(v.text) })
			}
		}
		if err != nil {
			return [32]byte{}, err
		}
	}
	return [32]byte(hash.Sum(nil)), nil
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
