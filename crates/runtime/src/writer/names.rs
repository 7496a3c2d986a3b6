//! Which names a source may have: one path segment that is a folder name on every platform.

use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, Result};

/// Longest source name in UTF-8 bytes. It leaves room below the 255 bytes that file systems allow.
pub const MAX_SOURCE_NAME_BYTES: usize = 200;

/// The folder in a base directory that holds what is being written; no source may be called so.
pub(crate) const TMP_DIR: &str = "tmp";

/// Characters that are separators or forbidden in names on one platform or another.
const FORBIDDEN: &str = "/\\:*?\"<>|";

/// Checks a source name against the rules that hold on every platform, whichever this one is.
///
/// # Errors
/// [`Error::SourceName`] with the rule that is broken.
pub fn check_source_name(name: &str) -> Result<()> {
    match broken_rule(name) {
        None => Ok(()),
        Some(reason) => Err(Error::SourceName {
            name: name.to_owned(),
            reason,
        }),
    }
}

fn broken_rule(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".to_owned());
    }
    if name == "." || name == ".." {
        return Some("it names a directory by its position".to_owned());
    }
    if name.len() > MAX_SOURCE_NAME_BYTES {
        let (found, allowed) = (name.len(), MAX_SOURCE_NAME_BYTES);
        return Some(format!(
            "it has {found} bytes in UTF-8, at most {allowed} are allowed"
        ));
    }
    if let Some(bad) = name.chars().find(|c| FORBIDDEN.contains(*c)) {
        return Some(format!(
            "it contains {bad:?}; a name is one path segment without any of {FORBIDDEN}"
        ));
    }
    if let Some(bad) = name.chars().find(|c| c.is_control()) {
        return Some(format!(
            "it contains the control character U+{:04X}",
            u32::from(bad)
        ));
    }
    if name.starts_with('.') {
        return Some("it starts with a dot".to_owned());
    }
    if name.ends_with('.') {
        return Some("it ends with a dot".to_owned());
    }
    if name.starts_with(' ') || name.ends_with(' ') {
        return Some("it starts or ends with a space".to_owned());
    }
    if fold_source_name(name) == TMP_DIR {
        return Some("the folder of that name holds what is being written".to_owned());
    }
    if is_device(name) {
        return Some("it is a device name on Windows, with or without an extension".to_owned());
    }
    None
}

/// Whether Windows takes the name for a device: what stands before the first dot decides.
fn is_device(name: &str) -> bool {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end_matches(' ')
        .to_uppercase();
    if matches!(
        stem.as_str(),
        "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" | "CLOCK$"
    ) {
        return true;
    }
    let Some(port) = stem
        .strip_prefix("COM")
        .or_else(|| stem.strip_prefix("LPT"))
    else {
        return false;
    };
    let mut digits = port.chars();
    // The superscripts count too, in Windows' own list.
    matches!(
        (digits.next(), digits.next()),
        (Some('0'..='9' | '¹' | '²' | '³'), None)
    )
}

/// The form in which two names are compared: equal forms could be one folder on a file system that ignores case or
/// normalises Unicode.
pub fn fold_source_name(name: &str) -> String {
    // Plain ASCII, which most names are, is told at a glance: a folder may hold thousands.
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let composed: String = name.nfc().collect();
    composed.to_uppercase().to_lowercase().nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::{MAX_SOURCE_NAME_BYTES, check_source_name, fold_source_name};

    #[test]
    fn names_of_all_scripts_are_fine() {
        let longest = "x".repeat(MAX_SOURCE_NAME_BYTES);
        for name in [
            "a",
            "train set",
            "v1.2",
            "données",
            "数据",
            "данные",
            "🦀",
            "a#b",
            "100%",
            "[x]",
            "%20",
            "com",
            "com10",
            "console",
            "nul-1",
            "~x",
            "tmp1",
            "-",
            &longest,
        ] {
            check_source_name(name).unwrap();
        }
    }

    #[test]
    fn names_that_fail_somewhere_are_refused_everywhere() {
        let long = "x".repeat(MAX_SOURCE_NAME_BYTES + 1);
        for name in [
            "",
            ".",
            "..",
            ".hidden",
            "a.",
            " a",
            "a ",
            "a/b",
            "a\\b",
            "a:b",
            "a*",
            "a?",
            "a\"b",
            "<a",
            "a>",
            "a|b",
            "a\nb",
            "a\0b",
            "a\u{7f}",
            "a\u{85}b",
            "tmp",
            "TMP",
            "Tmp",
            "con",
            "CON",
            "nul.txt",
            "Aux.tar.gz",
            "com1",
            "LPT9.x",
            "com¹",
            "prn .x",
            "conin$",
            &long,
        ] {
            let refused = check_source_name(name).unwrap_err().to_string();
            assert!(refused.contains("refused: "), "{refused}");
        }
    }

    #[test]
    fn folding_joins_what_some_file_system_joins() {
        assert_eq!(fold_source_name("Data"), fold_source_name("dATA"));
        assert_eq!(
            fold_source_name("e\u{301}t\u{e9}"),
            fold_source_name("\u{c9}te\u{301}")
        );
        assert_eq!(fold_source_name("straße"), fold_source_name("STRASSE"));
        assert_eq!(fold_source_name("ς"), fold_source_name("σ"));
        assert_ne!(fold_source_name("a"), fold_source_name("b"));
        assert_eq!(fold_source_name("\u{212a}"), fold_source_name("K"));
        assert_eq!(fold_source_name("ﬁle"), fold_source_name("FILE"));
    }

    #[test]
    fn plain_ascii_folds_as_it_would_with_other_text_behind_it() {
        for character in (0_u8..128).map(char::from) {
            let plain = fold_source_name(&character.to_string());
            let followed = fold_source_name(&format!("{character}\u{4e00}"));
            assert_eq!(format!("{plain}\u{4e00}"), followed, "{character:?}");
        }
    }
}
