//! Media types by the first bytes of a payload.

/// So many bytes decide.
pub const HEAD_LEN: u32 = 262;

/// What starts with none of the known signatures.
const UNKNOWN: &str = "application/octet-stream";

/// Signatures at the start, the longer of two that share a start first.
const STARTS: [(&[u8], &str); 36] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\xff\x0a", "image/jxl"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"FORM", "audio/aiff"),
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"BZh", "application/x-bzip2"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\x04\x22\x4d\x18", "application/x-lz4"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x93NUMPY", "application/x-npy"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1", "application/vnd.apache.arrow.file"),
    (b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\0asm", "application/wasm"),
    (b"<?xml", "application/xml"),
    (b"<!DOCTYPE html", "text/html"),
];

/// Forms of a RIFF file, at byte 8.
const RIFF: [(&[u8], &str); 3] = [
    (b"WEBP", "image/webp"),
    (b"WAVE", "audio/wav"),
    (b"AVI ", "video/x-msvideo"),
];

/// Brands of an ISO base media file, at byte 8. Any other brand is taken for MP4.
const BRANDS: [(&[u8], &str); 9] = [
    (b"avif", "image/avif"),
    (b"avis", "image/avif"),
    (b"heic", "image/heic"),
    (b"heix", "image/heic"),
    (b"mif1", "image/heif"),
    (b"msf1", "image/heif"),
    (b"M4A ", "audio/mp4"),
    (b"qt  ", "video/quicktime"),
    (b"3gp", "video/3gpp"),
];

/// Sizes of the second header of a Windows bitmap, at byte 14: two letters alone would be too little.
const BITMAP_HEADERS: [u8; 7] = [12, 40, 52, 56, 64, 108, 124];

/// The media type of a payload that starts with these bytes.
pub fn mime(head: &[u8]) -> &'static str {
    let at = |offset: usize| head.get(offset..).unwrap_or_default();
    let by = |table: &[(&[u8], &'static str)], offset: usize| {
        let found = table
            .iter()
            .find(|(start, _)| at(offset).starts_with(start));
        found.map(|&(_, name)| name)
    };
    if head.starts_with(b"RIFF") {
        return by(&RIFF, 8).unwrap_or(UNKNOWN);
    }
    if at(4).starts_with(b"ftyp") {
        return by(&BRANDS, 8).unwrap_or("video/mp4");
    }
    if head.starts_with(b"\x1a\x45\xdf\xa3") {
        let name = head.get(..64.min(head.len())).unwrap_or_default();
        let is_webm = name.windows(4).any(|word| word == b"webm");
        return if is_webm {
            "video/webm"
        } else {
            "video/matroska"
        };
    }
    if head.starts_with(b"BM") && head.get(14).is_some_and(|len| BITMAP_HEADERS.contains(len)) {
        return "image/bmp";
    }
    if let Some(name) = by(&STARTS, 0) {
        return name;
    }
    if at(257).starts_with(b"ustar") {
        return "application/x-tar";
    }
    UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::{HEAD_LEN, STARTS, mime};

    #[test]
    fn each_signature_is_found_and_none_hides_another() {
        for (start, name) in STARTS {
            assert_eq!(mime(start), name);
            assert_eq!(mime(&[start, b"more"].concat()), name);
        }
    }

    #[test]
    fn forms_brands_and_places() {
        assert_eq!(mime(b"RIFF\x10\0\0\0WEBPVP8 "), "image/webp");
        assert_eq!(mime(b"RIFF\x10\0\0\0WAVEfmt "), "audio/wav");
        assert_eq!(mime(b"RIFF\x10\0\0\0????"), "application/octet-stream");
        assert_eq!(mime(b"\0\0\0\x18ftypavif"), "image/avif");
        assert_eq!(mime(b"\0\0\0\x18ftypisom"), "video/mp4");
        assert_eq!(mime(b"\x1a\x45\xdf\xa3\x01\x42\x82\x84webm"), "video/webm");
        assert_eq!(
            mime(b"\x1a\x45\xdf\xa3\x01\x42\x82\x88matroska"),
            "video/matroska"
        );
        assert_eq!(mime(b"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28"), "image/bmp");
        assert_eq!(mime(b"BMW is no bitmap"), "application/octet-stream");
        let mut tar = vec![b'a'; 257];
        tar.extend(b"ustar");
        assert_eq!(tar.len(), HEAD_LEN as usize);
        assert_eq!(mime(&tar), "application/x-tar");
    }

    #[test]
    fn text_and_nothing_are_unknown() {
        assert_eq!(mime(b"hello"), "application/octet-stream");
        assert_eq!(mime(b""), "application/octet-stream");
    }
}
