package datasetrt

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
)

// Cache is an open cache.
type Cache struct {
	folder   folder
	manifest *Manifest
	index    *index
	metadata *metadata
	shards   []atomic.Pointer[shard]

	closed atomic.Bool

	mu   sync.Mutex // guards what follows, and the opening of shards
	maps [][]byte
}

// Sample is one sample. It may be used again and again with [Cache.Read], which then allocates nothing
// as long as payloads are not compressed.
type Sample struct {
	// Index is the sample's number.
	Index uint64
	// Payload is the payload. It is valid until the sample is read into again or the cache is closed.
	Payload []byte
	// Values has one value a field, in the order of [Manifest.Fields]. It is valid as long as Payload.
	Values []Value

	batch  *batch
	buffer []byte
}

// Open opens a cache and makes the checks of opening. Each error about the cache is an [Error].
func Open(dir string) (*Cache, error) { return openCache(dir, false) }

// OpenVerified opens a cache after every check of the format (section 10.5).
func OpenVerified(dir string) (*Cache, error) { return openCache(dir, true) }

// Verify makes every check of the format and closes the cache again.
func Verify(dir string) error {
	c, err := OpenVerified(dir)
	if err != nil {
		return err
	}
	return c.Close()
}

func openCache(dir string, whole bool) (*Cache, error) {
	root, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	c := &Cache{folder: root}
	open := c.open
	if whole {
		open = c.verify
	}
	if err := open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cache) readManifest() error {
	data, err := c.folder.read(manifestName, "M1")
	if err != nil {
		return err
	}
	if c.manifest, err = ParseManifest(data); err != nil {
		return err
	}
	c.shards = make([]atomic.Pointer[shard], len(c.manifest.Shards))
	return nil
}

// open makes the checks of opening, in their order.
func (c *Cache) open() error {
	if err := c.readManifest(); err != nil {
		return err
	}
	metadata, err := c.mapped(c.manifest.Metadata.Name, c.manifest.Metadata.Size)
	if err != nil {
		return err
	}
	index, err := c.mapped(c.manifest.Index.Name, c.manifest.Index.Size)
	if err != nil {
		return err
	}
	if c.index, err = openIndex(index, c.manifest); err != nil {
		return err
	}
	c.metadata, err = openMetadata(metadata, c.index.metadataSums, c.manifest)
	return err
}

// mapped opens a file until the cache is closed. c.mu is held, or nobody else has the cache yet.
func (c *Cache) mapped(name string, size uint64) ([]byte, error) {
	data, err := c.folder.mapped(name, size)
	if err == nil && data != nil {
		c.maps = append(c.maps, data)
	}
	return data, err
}

// Close releases the files. Payloads and texts handed out before must not be used any more, nor may
// another goroutine be reading.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Swap(true) {
		return nil
	}
	var errs []error
	for _, data := range c.maps {
		errs = append(errs, unmapFile(data))
	}
	c.maps = nil
	for i := range c.shards {
		c.shards[i].Store(nil)
	}
	return errors.Join(append(errs, c.folder.root.Close())...)
}

// Manifest gives what the manifest says. It must not be changed.
func (c *Cache) Manifest() *Manifest { return c.manifest }

// Len is the number of samples.
func (c *Cache) Len() uint64 { return c.manifest.Samples }

// Sample reads sample i into memory of its own, but for what lies in mapped files.
func (c *Cache) Sample(i uint64) (*Sample, error) {
	s := &Sample{}
	if err := c.Read(i, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Read reads sample i into s, whose memory it uses again, and makes the checks of using a sample. After an
// error s holds nothing of use.
func (c *Cache) Read(i uint64, s *Sample) error {
	payload, err := c.payload(i, s)
	if err != nil {
		s.Payload = nil
		return err
	}
	s.Index, s.Payload = i, payload
	return c.row(i, s)
}

// Payload reads the payload of sample i into s and leaves its metadata alone.
func (c *Cache) Payload(i uint64, s *Sample) error {
	payload, err := c.payload(i, s)
	s.Index, s.Payload, s.Values = i, payload, s.Values[:0]
	return err
}

// Row reads the metadata of sample i into s and leaves its payload alone.
func (c *Cache) Row(i uint64, s *Sample) error {
	if err := c.usable(i); err != nil {
		return err
	}
	s.Index, s.Payload = i, nil
	return c.row(i, s)
}

func (c *Cache) usable(i uint64) error {
	if i >= c.manifest.Samples {
		return fmt.Errorf("%w: %d of %d", ErrRange, i, c.manifest.Samples)
	}
	if c.closed.Load() {
		return ErrClosed
	}
	return nil
}

func (c *Cache) payload(i uint64, s *Sample) ([]byte, error) {
	if err := c.usable(i); err != nil {
		return nil, err
	}
	e, raw, err := c.index.entry(i)
	if err != nil {
		return nil, err
	}
	if err := c.checkEntry(i, e, raw); err != nil {
		return nil, err
	}
	shard := c.shards[e.Shard].Load()
	if shard == nil {
		if shard, err = c.openShard(int(e.Shard)); err != nil {
			return nil, err
		}
	}
	payload, buffer, err := shard.record(e, raw, i, s.buffer)
	s.buffer = buffer
	return payload, err
}

func (c *Cache) row(i uint64, s *Sample) error {
	b, err := c.metadata.find(i, s.batch)
	if err != nil {
		return err
	}
	s.batch = b
	fields := len(c.metadata.fields)
	if cap(s.Values) < fields {
		s.Values = make([]Value, fields)
	}
	s.Values = s.Values[:fields]
	for j := range s.Values {
		if err := c.metadata.value(b, i-b.first, j, &s.Values[j]); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry makes the checks E1 to E4.
func (c *Cache) checkEntry(i uint64, e Entry, raw uint32) error {
	m := c.manifest
	wrong := func(check, format string, args ...any) error {
		return fail(EntryInvalid, check, indexName, fmt.Sprintf("entry %d", i), format, args...)
	}
	if uint64(e.Shard) >= uint64(len(m.Shards)) {
		return wrong("E1", "shard %d of %d", e.Shard, len(m.Shards))
	}
	if e.Offset < shardHeaderLen || e.Offset&(m.Alignment-1) != 0 {
		return wrong("E2", "offset %d is below 64 or no multiple of %d", e.Offset, m.Alignment)
	}
	info := &m.Shards[e.Shard]
	if limit := info.Size - shardTrailerLen - footerLen(info.Samples, m.Codec); e.Offset+uint64(e.StoredLen) > limit {
		return wrong("E3", "%d bytes at %d reach beyond %d", e.StoredLen, e.Offset, limit)
	}
	if !lengthsAllowed(e.StoredLen, raw) {
		return wrong("E4", "%d bytes can't be stored as %d", raw, e.StoredLen)
	}
	return nil
}

// openShard makes the checks F1, F2 and S1 to S5 of a shard that is used for the first time.
func (c *Cache) openShard(number int) (*shard, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.shards[number].Load(); s != nil {
		return s, nil
	}
	if c.closed.Load() {
		return nil, ErrClosed
	}
	info := &c.manifest.Shards[number]
	data, err := c.mapped(info.Path(), info.Size)
	if err != nil {
		return nil, err
	}
	s, err := openShard(data, info, c.manifest.Codec)
	if err != nil {
		return nil, err
	}
	c.shards[number].Store(s)
	return s, nil
}

// All iterates over all samples in order. The sample is the same one each time: whoever keeps a payload
// or a text copies it. After an error the iteration ends.
func (c *Cache) All() iter.Seq2[*Sample, error] {
	return func(yield func(*Sample, error) bool) {
		s := &Sample{}
		for i := range c.Len() {
			if err := c.Read(i, s); err != nil {
				yield(nil, err)
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// Select iterates over the samples whose numbers rows gives, such as those of a window of a stream. It is like [Cache.All] otherwise.
func (c *Cache) Select(rows iter.Seq[uint64]) iter.Seq2[*Sample, error] {
	return func(yield func(*Sample, error) bool) {
		s := &Sample{}
		for i := range rows {
			if err := c.Read(i, s); err != nil {
				yield(nil, err)
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}
