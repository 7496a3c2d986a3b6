//! Loops that are compiled twice: for every processor, and for those with vectors of 256 bits.

/// Defines a function whose loops become instructions of AVX2 where the processor has them, and of the platform's baseline
/// else. The operations are the same in the same order, and none is fused with another, so are the results to the bit.
///
/// What the body calls must be inlined into it, else it stays as it is: `#[inline(always)]` functions and small closures.
macro_rules! wide {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $body:block
    ) => {
        $(#[$attribute])*
        $visibility fn $name($($argument: $kind),*) $(-> $result)? {
            #[inline(always)]
            fn plain($($argument: $kind),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $kind),*) $(-> $result)? {
                    plain($($argument),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the instructions.
                    #[allow(unsafe_code)]
                    return unsafe { wide($($argument),*) };
                }
            }
            plain($($argument),*)
        }
    };
}

pub(crate) use wide;
