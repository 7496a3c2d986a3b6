use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::*;
use crate::cursor::hex;
use crate::error::FormatError;
use crate::schema::{Field, FieldType};

fn sample() -> Manifest {
    let shard = |name: &str, samples, size| ShardInfo {
        name: name.to_owned(),
        size,
        samples,
        id: [0xAB; 16],
        crc32c: 0x0102_0304,
        sha256: None,
    };
    Manifest {
        required: vec![],
        optional: vec!["payload.sha256".to_owned()],
        identity: [0x5A; 32],
        source: SourceInfo {
            name: "näme \"1\"\n".to_owned(),
            fingerprint: None,
        },
        created: "2025-02-03T04:05:06Z".to_owned(),
        writer: "dataset_rt 0.1.0".to_owned(),
        samples: 5,
        payload_bytes: 70,
        stored_bytes: 50,
        schema: Schema::new(vec![
            Field::new("a", FieldType::Bool),
            Field {
                nullable: true,
                description: Some("what it is".to_owned()),
                ..Field::new("", FieldType::Utf8)
            },
        ])
        .unwrap(),
        codec: Codec::Lz4,
        user: None,
        media_type: None,
        align: 3,
        metadata: FileInfo {
            size: 700,
            crc32c: 1,
            sha256: None,
        },
        index: FileInfo {
            size: 400,
            crc32c: 0xFFFF_FFFF,
            sha256: Some([1; 32]),
        },
        shards: vec![shard("000000", 2, 512), shard("000001", 3, 1024)],
    }
}

/// Replaces text before the tail and seals the manifest again.
fn edited(old: &str, new: &str) -> Result<Manifest, FormatError> {
    let text = String::from_utf8(sample().to_bytes()).unwrap();
    let body = &text[..text.len() - TAIL_LEN];
    assert!(body.contains(old), "{old} in {body}");
    Manifest::parse(&sealed(&body.replacen(old, new, 1)))
}

fn sealed(body: &str) -> Vec<u8> {
    format!("{body}{TAIL_START}{}{TAIL_END}", hex(&Sha256::digest(body))).into_bytes()
}

fn code(old: &str, new: &str) -> &'static str {
    edited(old, new).map_or_else(|error| error.code(), |_| "")
}

#[test]
fn round_trip() {
    let mut manifest = sample();
    assert_eq!(Manifest::parse(&manifest.to_bytes()).unwrap(), manifest);
    manifest.user = Some(BTreeMap::from([
        (String::new(), "\u{0}\u{1f}\\".to_owned()),
        ("k\"".to_owned(), "\u{10FFFF}".to_owned()),
    ]));
    manifest.media_type = Some("text/plain".to_owned());
    manifest.source.fingerprint = Some(String::new());
    manifest.shards[1].sha256 = Some([7; 32]);
    assert_eq!(manifest.check(), Ok(()));
    assert_eq!(Manifest::parse(&manifest.to_bytes()).unwrap(), manifest);
    assert_eq!(manifest.records_limits(), [512 - 64 - 24, 1024 - 64 - 40]);
}

/// The text is part of the promise of equal bytes.
#[test]
fn members_in_their_order() {
    let text = String::from_utf8(sample().to_bytes()).unwrap();
    let expected = concat!(
        r#"{"format":"dataset_rt.cache","version":1,"required":[],"optional":["payload.sha256"],"#,
        r#""identity":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a","#,
        r#""source":{"name":"näme \"1\"\u000a","fingerprint":null},"#,
        r#""created":"2025-02-03T04:05:06Z","writer":"dataset_rt 0.1.0","#,
        r#""samples":5,"payload_bytes":70,"stored_bytes":50,"#,
        r#""fields":[{"name":"a","type":"bool","nullable":false},"#,
        r#"{"name":"","type":"utf8","nullable":true,"description":"what it is"}],"#,
        r#""codec":{"name":"lz4"},"alignment":8,"#,
        r#""metadata":{"name":"metadata.arrow","size":700,"crc32c":"00000001"},"#,
        r#""index":{"name":"index.bin","size":400,"crc32c":"ffffffff","sha256":"#,
        r#""0101010101010101010101010101010101010101010101010101010101010101"},"#,
        r#""shards":[{"name":"000000","size":512,"samples":2,"#,
        r#""id":"abababababababababababababababab","crc32c":"01020304"},"#,
        r#"{"name":"000001","size":1024,"samples":3,"#,
        r#""id":"abababababababababababababababab","crc32c":"01020304"}]"#,
        r#","sha256":""#,
    );
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.len(), expected.len() + 64 + 3);
}

#[test]
fn every_truncation_and_every_flip_is_damage() {
    let bytes = sample().to_bytes();
    for len in 0..bytes.len() {
        let error = Manifest::parse(&bytes[..len]).unwrap_err();
        assert_eq!(error.code(), "manifest_damaged", "{len}");
    }
    for at in 0..bytes.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut bad = bytes.clone();
            bad[at] ^= bit;
            assert_eq!(
                Manifest::parse(&bad).unwrap_err().code(),
                "manifest_damaged",
                "{at}"
            );
        }
    }
    let mut longer = bytes.clone();
    longer.push(b'\n');
    assert_eq!(
        Manifest::parse(&longer).unwrap_err().code(),
        "manifest_damaged"
    );
}

#[test]
fn versions() {
    let with = |version: &str| {
        let body = format!("{PREFIX}{version},\"what\":follows]");
        Manifest::parse(&sealed(&body)).unwrap_err()
    };
    assert_eq!(
        with("2"),
        FormatError::VersionUnsupported {
            found: 2,
            supported: 1
        }
    );
    for other in ["0", "4294967296", "9007199254740991"] {
        assert_eq!(with(other).code(), "version_unsupported", "{other}");
    }
    for bad in [
        "00",
        "01",
        "",
        "1.0",
        "-1",
        "9007199254740992",
        "1 ",
        "\"1\"",
    ] {
        assert_eq!(with(bad).code(), "manifest_invalid", "{bad}");
    }
    assert_eq!(with("1").code(), "manifest_invalid");
}

#[test]
fn features_come_before_other_members() {
    let error = edited(
        "\"required\":[]",
        "\"required\":[\"a\",\"b\"],\"identity\":0",
    )
    .unwrap_err();
    assert_eq!(
        error,
        FormatError::FeatureUnsupported {
            features: vec!["a".to_owned(), "b".to_owned()]
        }
    );
    assert_eq!(
        code(
            "\"optional\":[\"payload.sha256\"]",
            "\"optional\":[\"x\",\"y\"]"
        ),
        ""
    );
    assert_eq!(
        code("\"optional\":[", "\"optional\":[1,"),
        "manifest_invalid"
    );
    assert_eq!(
        code("\"required\":[]", "\"required\":{}"),
        "manifest_invalid"
    );
}

#[test]
fn unknown_members_are_ignored_everywhere() {
    for old in [
        "\"identity\"",
        "\"fingerprint\"",
        "\"type\":\"bool\"",
        "\"size\":700",
        "\"samples\":2",
        "\"name\":\"lz4\"",
    ] {
        let new = format!("\"x\":[1.5e300,{{\"y\":null}},-1],{old}");
        assert_eq!(edited(old, &new), Ok(sample()), "{old}");
    }
}

#[test]
fn members_against_the_rules() {
    for (old, new) in [
        ("\"samples\":5", "\"samples\":5.5"),
        ("\"samples\":5", "\"samples\":-5"),
        ("\"samples\":5", "\"samples\":\"5\""),
        ("\"samples\":5", "\"samples\":0"),
        ("\"samples\":5", "\"samples\":6"),
        ("\"samples\":5,", ""),
        ("\"payload_bytes\":70", "\"payload_bytes\":9007199254740992"),
        ("\"payload_bytes\":70", "\"payload_bytes\":1e400"),
        ("5a5a\",\"source", "5A5a\",\"source"),
        ("5a5a\",\"source", "5a\",\"source"),
        ("\"fingerprint\":null", "\"fingerprint\":1"),
        (",\"fingerprint\":null", ""),
        ("2025-02-03T04:05:06Z", "2025-02-03 04:05:06"),
        ("\"writer\":\"", "\"writer\":1,\"w\":\""),
        ("\"type\":\"bool\"", "\"type\":\"Bool\""),
        ("\"nullable\":false", "\"nullable\":0"),
        ("\"description\":\"what it is\"", "\"description\":null"),
        ("\"lz4\"", "\"zstd\""),
        ("\"alignment\":8", "\"alignment\":6"),
        ("\"alignment\":8", "\"alignment\":8192"),
        ("\"alignment\":8", "\"alignment\":8,\"user\":{\"a\":1}"),
        ("\"alignment\":8", "\"alignment\":8,\"media_type\":null"),
        ("\"crc32c\":\"00000001\"", "\"crc32c\":\"0000001\""),
        ("\"sha256\":\"01", "\"sha256\":\"0101"),
        ("\"size\":512", "\"size\":151"),
        ("\"size\":512", "\"size\":1099511627776"),
        ("\"samples\":2,", "\"samples\":0,"),
        ("\"id\":\"ab", "\"id\":\"AB"),
        ("\"shards\":[", "\"shards\":[],\"s\":["),
        ("\"shards\":[", "\"shards\":[1,"),
        ("dataset_rt 0.1.0", "\\ud800"),
        ("dataset_rt 0.1.0", "\u{1}"),
        ("\"name\":\"000001\"", "\"name\":\"000000\""),
        ("\"name\":\"metadata.arrow\"", "\"name\":\"other.arrow\""),
        ("\"name\":\"index.bin\"", "\"name\":\"../index.bin\""),
        ("\"name\":\"a\"", "\"name\":\"\""),
        ("\"codec\":", "\"codec\""),
    ] {
        assert_eq!(code(old, new), "manifest_invalid", "{old} -> {new}");
    }
    for (old, new) in [
        ("\"name\":\"000001\"", "\"name\":\"../../x\""),
        ("\"name\":\"a\"", "\"name\":\"weight\""),
        ("\"name\":\"a\"", "\"name\":\"a\\u0000\""),
    ] {
        assert_eq!(code(old, new), "name_invalid", "{old} -> {new}");
    }
    for (old, new) in [
        ("\"size\":512", "\"size\":152"),
        ("\"size\":512", "\"size\":1099511627775"),
        ("04:05:06Z", "04:05:60.123Z"),
        ("\"alignment\":8", "\"alignment\":4096"),
        ("\"payload_bytes\":70", "\"payload_bytes\":9007199254740991"),
    ] {
        assert_eq!(code(old, new), "", "{old} -> {new}");
    }
}

#[test]
fn errors_name_the_member() {
    let error = edited("\"samples\":3", "\"samples\":true").unwrap_err();
    assert_eq!(
        error.to_string(),
        "manifest member shards[1].samples is true; allowed: an integer in 1..=2^53-1"
    );
}

#[test]
fn a_writer_is_told_what_a_reader_would_refuse() {
    let mut manifest = sample();
    manifest.shards[0].samples = 1;
    assert!(matches!(
        manifest.check(),
        Err(FormatError::ManifestSum { .. })
    ));
    let mut manifest = sample();
    manifest.created = "yesterday".to_owned();
    assert_eq!(manifest.check().unwrap_err().code(), "manifest_invalid");
    let mut manifest = sample();
    manifest.shards[0].name = "x".to_owned();
    assert_eq!(manifest.check().unwrap_err().code(), "name_invalid");
}

/// Shards are read one by one, but what is wrong is told as if all were looked at together.
#[test]
fn the_first_wrong_shard_is_named() {
    let message = |old: &str, new: &str| edited(old, new).unwrap_err().to_string();
    let second_without_id = ("\"samples\":3,\"id\"", "\"samples\":3,\"x\"");
    let found = message(second_without_id.0, second_without_id.1);
    assert!(
        found.starts_with("manifest member shards[1].id is missing"),
        "{found}"
    );
    // The size of the first depends on the codec, and still comes before.
    let text = String::from_utf8(sample().to_bytes()).unwrap();
    let body = text[..text.len() - TAIL_LEN].replace(second_without_id.0, second_without_id.1);
    let both = body.replace("\"size\":512", "\"size\":151");
    let found = Manifest::parse(&sealed(&both)).unwrap_err().to_string();
    let expected = "manifest member shards[0].size is 151; allowed: 152..2^40 for 2 samples";
    assert_eq!(found, expected);
    // So do the members before the list, wherever they stand.
    let found = Manifest::parse(&sealed(&both.replace("\"alignment\":8", "\"alignment\":6")));
    let found = found.unwrap_err().to_string();
    assert!(
        found.starts_with("manifest member alignment is 6"),
        "{found}"
    );
}

#[test]
fn of_two_lists_of_shards_the_last_counts() {
    for (first, expected) in [
        ("1", ""),
        ("[]", ""),
        ("{\"a\":[]}", ""),
        ("[1,\"\\ud800\"]", "manifest_invalid"),
    ] {
        let new = format!("\"shards\":{first},\"shards\":[{{");
        assert_eq!(code("\"shards\":[{", &new), expected, "{first}");
    }
    for (last, found) in [
        ("null", "null"),
        ("{}", "an object"),
        ("-1.5", "-1.5"),
        ("\"x\"", "\"x\""),
        ("-7", "-7"),
        ("true", "true"),
    ] {
        let error = edited("}]", &format!("}}],\"shards\":{last}"));
        // The first `}]` ends the fields, so that the list of shards follows and counts; a second one is put behind it.
        assert_eq!(error.as_ref().map(|m| m.shards.len()), Ok(2), "{last}");
        let text = String::from_utf8(sample().to_bytes()).unwrap();
        let body = format!("{},\"shards\":{last}", &text[..text.len() - TAIL_LEN]);
        let error = Manifest::parse(&sealed(&body)).unwrap_err();
        let expected = format!("manifest member shards is {found}; allowed: a list");
        assert_eq!(error.to_string(), expected);
    }
}
