//! Saved positions: what is written is read back, what is not exactly right is refused, a difference has a name.

use serde_json::{Value, json};

use super::text::to_hex;
use super::{PositionError, PositionItem, SavedPosition, StreamProgress, TableDigests};
use crate::sampler::{Sampler, SamplerConfig, caches_digest};

const PROGRESS: StreamProgress = StreamProgress {
    window_start: 2000,
    window_len: 1000,
    delivered: 96,
    next: 4000,
    epoch_len: Some(1000),
};

const CONFIG: SamplerConfig = SamplerConfig {
    shuffle: true,
    replacement: true,
    seed: u64::MAX,
    stream: 7,
};

const TABLE: TableDigests = TableDigests {
    rows: [0xAB; 32],
    weights: Some([0x01; 32]),
};

fn position(
    config: SamplerConfig,
    rows: u64,
    caches: &[[u8; 32]],
    table: TableDigests,
) -> SavedPosition {
    let sampler = Sampler::new(config, rows, None).unwrap();
    SavedPosition::new(&sampler, PROGRESS, caches, table).unwrap()
}

fn saved() -> SavedPosition {
    position(CONFIG, 1 << 61, &[[1; 32], [2; 32], [3; 32]], TABLE)
}

#[test]
fn text_of_a_position() {
    let text = saved().to_json().unwrap();
    let expected = json!({
        "format": "dataset_rt.position", "version": 1, "algorithm": 1,
        "mode": "weighted", "seed": "18446744073709551615", "stream": 7, "rows": "2305843009213693952",
        "window_start": "2000", "window_len": "1000", "delivered": "96", "next": "4000", "epoch_len": "1000",
        "caches": to_hex(&caches_digest(&[[1; 32], [2; 32], [3; 32]])),
        "cache_heads": ["01010101", "02020202", "03030303"],
        "table": {"rows": "ab".repeat(32), "weights": "01".repeat(32)},
    });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[test]
fn read_back_as_written() {
    let plain = SamplerConfig {
        replacement: false,
        ..CONFIG
    };
    let table = TableDigests {
        weights: None,
        ..TABLE
    };
    for position in [saved(), position(plain, 1, &[[9; 32]], table)] {
        let text = position.to_json().unwrap();
        let read = SavedPosition::parse(&text).unwrap();
        assert_eq!(read, position);
        assert_eq!(read.progress(), PROGRESS);
        assert_eq!(read.check(&position), Ok(()));
        // Other tools order keys by name and indent.
        let value: Value = serde_json::from_str(&text).unwrap();
        let indented = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(SavedPosition::parse(&indented).unwrap(), position);
    }
}

#[test]
fn small_whatever_the_number_of_caches() {
    let caches: Vec<[u8; 32]> = (0..1000_u32)
        .map(|i| [(i % 251).try_into().unwrap(); 32])
        .collect();
    let sampler = Sampler::new(CONFIG, 1 << 62, None).unwrap();
    let far = (1 << 63) - 1;
    let progress = StreamProgress {
        window_start: 1,
        window_len: far,
        delivered: far,
        next: 1 << 63,
        epoch_len: Some(far),
    };
    let position = SavedPosition::new(&sampler, progress, &caches, TABLE).unwrap();
    let len = position.to_json().unwrap().len();
    assert!(len < 2048, "{len} bytes");
}

fn parse_changed(change: impl FnOnce(&mut Value)) -> Result<SavedPosition, PositionError> {
    let mut value: Value = serde_json::from_str(&saved().to_json().unwrap()).unwrap();
    change(&mut value);
    SavedPosition::parse(&value.to_string())
}

#[test]
fn other_versions_are_named() {
    // Whatever else a later version changes, it is told by its number.
    let later = r#"{"format": "dataset_rt.position", "version": 2, "algorithm": 1, "seeds": []}"#;
    assert_eq!(
        SavedPosition::parse(later),
        Err(PositionError::Version { found: 2 })
    );
    let other = parse_changed(|value| value["algorithm"] = json!(2));
    assert_eq!(other, Err(PositionError::Algorithm { found: 2 }));
    let foreign = parse_changed(|value| value["format"] = json!("state"));
    assert!(
        matches!(foreign, Err(PositionError::Invalid(_))),
        "{foreign:?}"
    );
}

#[test]
fn loose_texts_are_refused() {
    let text = saved().to_json().unwrap();
    for broken in [
        String::new(),
        "null".into(),
        text[1..].into(),
        format!("{text} {{}}"),
        " ".repeat(70_000),
    ] {
        let error = SavedPosition::parse(&broken);
        assert!(matches!(error, Err(PositionError::Invalid(_))), "{error:?}");
    }
    let twice = text.replacen('{', r#"{"stream":7,"#, 1);
    assert!(matches!(
        SavedPosition::parse(&twice),
        Err(PositionError::Invalid(_))
    ));
    let keys = [
        "mode",
        "seed",
        "stream",
        "rows",
        "window_start",
        "window_len",
        "delivered",
        "next",
        "epoch_len",
    ];
    for key in keys.into_iter().chain([
        "caches",
        "cache_heads",
        "table",
        "format",
        "version",
        "algorithm",
    ]) {
        let missing = parse_changed(|value| {
            value.as_object_mut().unwrap().remove(key);
        });
        assert!(
            matches!(missing, Err(PositionError::Invalid(_))),
            "{key}: {missing:?}"
        );
    }
    let wrong = [
        ("more", json!(1)),
        ("mode", json!("shuffled")),
        ("seed", json!(5)),
        ("seed", json!("05")),
        ("seed", json!("+5")),
        ("seed", json!("-5")),
        ("seed", json!("5.0")),
        ("seed", json!(" 5")),
        ("seed", json!("")),
        ("seed", json!("18446744073709551616")),
        ("stream", json!("7")),
        ("stream", json!(7.0)),
        ("stream", json!(-1)),
        ("stream", json!(4_294_967_296_u64)),
        ("rows", json!(true)),
        ("epoch_len", json!(1000)),
        ("caches", json!("AB".repeat(32))),
        ("caches", json!("ab".repeat(31))),
        ("cache_heads", json!("01010101")),
        ("table", json!({"rows": "ab".repeat(32)})),
        (
            "table",
            json!({"rows": "ab".repeat(32), "weights": "01".repeat(32), "more": 1}),
        ),
    ];
    for (key, value) in wrong {
        let changed = parse_changed(|position| position[key] = value.clone());
        assert!(
            matches!(changed, Err(PositionError::Invalid(_))),
            "{key} {value}: {changed:?}"
        );
    }
}

#[test]
fn impossible_values_are_refused() {
    let wrong = [
        ("rows", json!("0")),
        ("rows", json!("4611686018427387905")),
        ("window_len", json!("9223372036854775807")),
        ("delivered", json!("1001")),
        ("next", json!("2999")),
        ("next", json!("9223372036854775809")),
        ("epoch_len", json!("0")),
        ("cache_heads", json!([])),
        ("cache_heads", json!(["0101010"])),
        ("cache_heads", json!(vec!["01010101"; 65])),
        ("table", json!({"rows": "ab".repeat(32), "weights": null})),
    ];
    for (key, value) in wrong {
        match parse_changed(|position| position[key] = value.clone()) {
            Err(PositionError::Value { key: found, .. }) => assert_eq!(found, key),
            other => panic!("{key} {value}: {other:?}"),
        }
    }
    let unused = parse_changed(|position| position["mode"] = json!("ordered"));
    assert!(
        matches!(unused, Err(PositionError::Value { key: "table", .. })),
        "{unused:?}"
    );
}

#[test]
fn a_difference_is_named() {
    let caches = [[1; 32], [2; 32], [3; 32]];
    let no_weights = TableDigests {
        weights: None,
        ..TABLE
    };
    let cases = [
        (
            position(CONFIG, 1 << 61, &[[1; 32], [9; 32], [3; 32]], TABLE),
            PositionItem::Caches,
            "cache 1 was 02020202",
        ),
        (
            position(CONFIG, 1 << 61, &caches[..2], TABLE),
            PositionItem::Caches,
            "3 saved, 2 here",
        ),
        (
            position(CONFIG, 5, &caches, TABLE),
            PositionItem::Rows,
            "saved 2305843009213693952, here 5",
        ),
        (
            position(
                CONFIG,
                1 << 61,
                &caches,
                TableDigests {
                    rows: [0xAC; 32],
                    ..TABLE
                },
            ),
            PositionItem::Table,
            "saved abab",
        ),
        (
            position(
                SamplerConfig {
                    replacement: false,
                    ..CONFIG
                },
                1 << 61,
                &caches,
                no_weights,
            ),
            PositionItem::Mode,
            "saved weighted, here permutation",
        ),
        (
            position(SamplerConfig { seed: 1, ..CONFIG }, 1 << 61, &caches, TABLE),
            PositionItem::Seed,
            "here 1",
        ),
        (
            position(
                SamplerConfig {
                    stream: 8,
                    ..CONFIG
                },
                1 << 61,
                &caches,
                TABLE,
            ),
            PositionItem::Stream,
            "saved 7",
        ),
        (
            position(
                CONFIG,
                1 << 61,
                &caches,
                TableDigests {
                    weights: Some([2; 32]),
                    ..TABLE
                },
            ),
            PositionItem::Weights,
            "saved 0101",
        ),
    ];
    for (here, item, part) in cases {
        let error = saved().check(&here).unwrap_err();
        assert!(
            matches!(&error, PositionError::Differs { item: found, .. } if *found == item),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains(item.name()) && text.contains(part), "{text}");
    }
    // Past the heads only the digest tells.
    let mut many = vec![[5; 32]; 100];
    let first = position(CONFIG, 1 << 61, &many, TABLE);
    many[99] = [6; 32];
    let error = first
        .check(&position(CONFIG, 1 << 61, &many, TABLE))
        .unwrap_err();
    assert!(
        error.to_string().contains("the first 64 look alike"),
        "{error}"
    );
}

/// Where the stream was is not compared: that is what a position is for.
#[test]
fn progress_is_no_difference() {
    let sampler = Sampler::new(CONFIG, 1 << 61, None).unwrap();
    let fresh = StreamProgress {
        window_start: 0,
        window_len: 0,
        delivered: 0,
        next: 0,
        epoch_len: None,
    };
    let here = SavedPosition::new(&sampler, fresh, &[[1; 32], [2; 32], [3; 32]], TABLE).unwrap();
    assert_eq!(saved().check(&here), Ok(()));
}
