package datasetrt

// verify makes every check in the order of section 10.5 of the format.
func (c *Cache) verify() error {
	if err := c.readManifest(); err != nil {
		return err
	}
	m := c.manifest
	metadata, err := c.mapped(m.Metadata.Name, m.Metadata.Size)
	if err != nil {
		return err
	}
	index, err := c.mapped(m.Index.Name, m.Index.Size)
	if err != nil {
		return err
	}
	for i := range m.Shards {
		if err := c.folder.stat(m.Shards[i].Path(), m.Shards[i].Size); err != nil {
			return err
		}
	}
	if c.index, err = openIndex(index, m); err != nil {
		return err
	}
	if err := c.verifyIndex(); err != nil {
		return err
	}
	if err := c.verifyEntries(); err != nil {
		return err
	}
	if err := newSummed(metadata, c.index.metadataSums, MetadataDamaged, "A1", metadataName, "file").all(); err != nil {
		return err
	}
	if c.metadata, err = openMetadata(metadata, c.index.metadataSums, m); err != nil {
		return err
	}
	if err := c.metadata.verify(); err != nil {
		return err
	}
	if err := checkWhole(metadata, &m.Metadata, metadataName, "A14"); err != nil {
		return err
	}
	if err := c.verifyShards(); err != nil {
		return err
	}
	return c.verifyIdentity()
}

// verifyIndex makes the checks I14 to I16.
func (c *Cache) verifyIndex() error {
	if err := c.index.entries.all(); err != nil {
		return err
	}
	if c.index.rawLengths != nil {
		if err := c.index.rawLengths.all(); err != nil {
			return err
		}
	}
	if err := checkWhole(c.index.data, &c.manifest.Index, indexName, "I15"); err != nil {
		return err
	}
	return c.index.checkPadding()
}

// verifyEntries makes the checks E1 to E4 and T1.
func (c *Cache) verifyEntries() error {
	payload, stored := uint64(0), uint64(0)
	for i := range c.Len() {
		e, raw, err := c.index.entry(i)
		if err != nil {
			return err
		}
		if err := c.checkEntry(i, e, raw); err != nil {
			return err
		}
		// A sum above the largest number of a manifest stays there: it is wrong, and must not wrap.
		payload = min(payload+uint64(raw), maxInteger+1)
		stored = min(stored+uint64(e.StoredLen), maxInteger+1)
	}
	if m := c.manifest; payload != m.PayloadBytes || stored != m.StoredBytes {
		return fail(ManifestInvalid, "T1", manifestName, "", "payload_bytes %d and stored_bytes %d, the index has %d and %d",
			m.PayloadBytes, m.StoredBytes, payload, stored)
	}
	return nil
}

// verifyShards makes the checks S1 to S17.
func (c *Cache) verifyShards() error {
	shards := make([]*shard, len(c.manifest.Shards))
	first := uint64(0)
	for i := range shards {
		s, err := c.openShard(i)
		if err != nil {
			return err
		}
		if err := s.verify(c, i, first); err != nil {
			return err
		}
		shards[i] = s
		first += s.info.Samples
	}
	return checkChain(shards)
}

// verifyIdentity makes check D1.
func (c *Cache) verifyIdentity() error {
	got, err := Identity(c.Len(), c.manifest.Fields, &content{cache: c})
	if err != nil {
		return err
	}
	if got != c.manifest.Identity {
		return fail(IdentityMismatch, "D1", manifestName, "identity", "the content's is %x, not %x", got, c.manifest.Identity)
	}
	return nil
}

// content gives a cache's content in the form the identity is computed from.
type content struct {
	cache *Cache
	batch *batch
}

func (c *content) Payload(i uint64) (rawLen, crc uint32, err error) {
	e, raw, err := c.cache.index.entry(i)
	return raw, e.CRC, err
}

func (c *content) Value(i uint64, j int, v *Value) error {
	b, err := c.cache.metadata.find(i, c.batch)
	if err != nil {
		return err
	}
	c.batch = b
	return c.cache.metadata.value(b, i-b.first, j, v)
}
