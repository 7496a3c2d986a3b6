// Package datasetrt reads DatasetRT caches, format version 1.
//
// [Open] makes the checks of opening; each sample is checked when it is read
// ([Cache.Read], [Cache.Sample], [Cache.All]). [OpenVerified] and [Verify] check
// every byte of every file, in the order the format prescribes, so that the first
// error has the code that any other conforming reader gives.
//
// Files are mapped into memory where the system can do that. Payloads and texts
// that a cache hands out lie in that mapping: they must not be written to, and not
// be used after [Cache.Close]. A cache must not be changed while it is open.
//
// A [Cache] may be used by many goroutines at once, a [Sample] by one.
//
// The order of samples (draws, permutations, windows, ranks) is package
// datasetrt/sampling.
package datasetrt
