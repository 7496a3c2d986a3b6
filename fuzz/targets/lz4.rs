//! Records: every block is decoded exactly or refused, as a decoder that was written from the specification says;
//! and every payload comes back.
#![no_main]

use dataset_rt_format::{Codec, decode_lz4_block};
use dataset_rt_fuzz::Bound;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static BOUND: Bound = Bound;

fuzz_target!(|data: &[u8]| {
    let Some((claim, block)) = data.split_first_chunk::<2>() else {
        return;
    };
    // Half of the lengths are near the right one.
    let claim = u16::from_le_bytes(*claim);
    let expected = decoded(block);
    let len = match &expected {
        Some(expected) if claim & 1 == 0 => expected
            .len()
            .saturating_add_signed(isize::from(claim as i16 >> 12)),
        _ => usize::from(claim) % (block.len() * 255 + 2),
    };
    if len <= 1 << 20 {
        let mut out = vec![0xA5; len];
        let found = decode_lz4_block(block, &mut out);
        match &expected {
            Some(expected) if expected.len() == len => {
                // A decoder may insist on the rules for the end of a block.
                if found.is_ok() {
                    assert_eq!(&out, expected);
                }
            }
            _ => assert!(
                found.is_err(),
                "{} bytes from a block of {:?}",
                len,
                expected.map(|e| e.len())
            ),
        }
        let _any = Codec::Lz4.decode(block, &mut out);
        assert_eq!(
            Codec::None.decode(block, &mut out).is_ok(),
            block.len() == len
        );
    }

    for codec in [Codec::None, Codec::Lz4] {
        let mut stored = vec![1, 2, 3];
        let stored_len = codec.encode(block, &mut stored);
        assert_eq!(stored.len(), stored_len + 3);
        assert!(stored_len <= block.len());
        assert!(codec.lengths_fit(stored_len as u64, block.len() as u64));
        let mut back = vec![0; block.len()];
        assert!(codec.decode(&stored[3..], &mut back).is_ok());
        assert_eq!(back, block);
        if stored_len < block.len() {
            assert_eq!(decoded(&stored[3..]).as_deref(), Some(block));
        }
    }
});

/// Decodes a block by the words of the specification. `None`: it breaks a rule, or becomes longer than 1 MiB.
fn decoded(block: &[u8]) -> Option<Vec<u8>> {
    let mut rest = block.iter().copied();
    let mut out: Vec<u8> = Vec::new();
    let longer = |half: u8, rest: &mut dyn Iterator<Item = u8>| {
        let mut len = usize::from(half);
        if half == 15 {
            loop {
                let byte = rest.next()?;
                len += usize::from(byte);
                if byte != 255 {
                    break;
                }
            }
        }
        Some(len)
    };
    loop {
        let token = rest.next()?;
        for _ in 0..longer(token >> 4, &mut rest)? {
            out.push(rest.next()?);
        }
        let Some(low) = rest.next() else {
            return Some(out);
        };
        let offset = usize::from(u16::from_le_bytes([low, rest.next()?]));
        if offset == 0 || offset > out.len() {
            return None;
        }
        let len = longer(token & 15, &mut rest)? + 4;
        if out.len() + len > 1 << 20 {
            return None;
        }
        for _ in 0..len {
            out.push(out[out.len() - offset]);
        }
    }
}
