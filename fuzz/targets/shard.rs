//! Shards: header, footer, trailer, records.
#![no_main]

use dataset_rt_format::{Codec, ShardFooter, ShardHeader, ShardTrailer, crc32c, encode_tail};
use dataset_rt_fuzz::{Bound, seal};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static BOUND: Bound = Bound;

fuzz_target!(|data: &[u8]| {
    look(data);
    let mut sealed = data.to_vec();
    seal::shard(&mut sealed);
    look(&sealed);
});

fn look(bytes: &[u8]) {
    let len = bytes.len() as u64;
    let header = ShardHeader::decode(bytes);
    if let Ok(header) = &header {
        assert_eq!(&header.encode()[..], &bytes[..64]);
        assert!(header.check_packing(header.codec, header.align).is_ok());
    }
    for codec in [Codec::None, Codec::Lz4] {
        let Ok(trailer) = ShardTrailer::decode(bytes, len, codec, None) else {
            continue;
        };
        let range = trailer.footer_range();
        assert!(range.start >= 64 && range.end == len - 64);
        let footer = &bytes[range.start as usize..range.end as usize];
        let Ok(footer) = ShardFooter::decode(bytes, &trailer, footer) else {
            continue;
        };
        let header = header.as_ref().expect("a footer's header is sound");
        assert_eq!(footer.entries().len() as u64, trailer.count);
        let mut end = 64;
        for (entry, raw_len) in footer.index_entries(7) {
            assert!(entry.offset >= end && entry.offset.is_multiple_of(1 << header.align));
            end = entry.offset + u64::from(entry.stored_len);
            assert!(end <= trailer.footer_offset);
            let stored = &bytes[entry.offset as usize..end as usize];
            let mut payload = vec![0; raw_len as usize];
            if header.codec.decode(stored, &mut payload).is_ok() {
                let _matches = crc32c(&payload) == entry.crc;
            }
        }
        // The end of the file is a function of what it says.
        let tail = encode_tail(
            &header.encode(),
            end,
            footer.entries(),
            header.codec,
            trailer.last,
        );
        assert_eq!(tail.id, trailer.id);
        assert_eq!(tail.file_size, len);
        if footer.check_padding(bytes).is_ok() {
            assert_eq!(&bytes[end as usize..], &tail.bytes[..]);
        }
    }
}
