// Package sampling computes the order of samples: version 1 of the DatasetRT sampling algorithm.
//
// A [Stream] is a function from a position to a row of the active table; it depends on the table's number of
// rows, the weights, the seed, the stream word and the mode alone. Windows and their parts for several processes are
// [Window], [Rank] and [Worker]; [Position] is the saved form. The parts the streams are made of are exported
// too, since each of them can be tested against the vectors.
package sampling
