package vectors

// What a writer decides: rules 11.1 and 7.4 of the format. The reader has no use for them but their vectors.

func up(x, a uint64) uint64 { return (x + a - 1) / a * a }

// rotation gives how many records each shard gets.
func rotation(stored []uint64, limit, alignment, footerEntry uint64) []uint64 {
	var counts []uint64
	end, count := uint64(64), uint64(0)
	for _, length := range stored {
		next := up(end, alignment) + length
		size := up(next, 64) + up((count+1)*footerEntry, 8) + 64
		if count > 0 && size > limit {
			counts = append(counts, count)
			next, count = up(64, alignment)+length, 0
		}
		end, count = next, count+1
	}
	if count > 0 {
		counts = append(counts, count)
	}
	return counts
}

const (
	batchRows = 65536
	batchText = 1 << 24
)

// batches gives the rows of each batch; runs[i] rows have texts of bytes[i] bytes each.
func batches(runs, bytes []uint64) []uint64 {
	var counts []uint64
	rows, total := uint64(0), uint64(0)
	for i, run := range runs {
		for range run {
			if rows == batchRows || rows > 0 && total+bytes[i] > batchText {
				counts = append(counts, rows)
				rows, total = 0, 0
			}
			rows, total = rows+1, total+bytes[i]
		}
	}
	if rows > 0 {
		counts = append(counts, rows)
	}
	return counts
}
