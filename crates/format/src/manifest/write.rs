//! Writing a manifest: members in a fixed order, without white space.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::{FileInfo, Manifest, PREFIX, TAIL_END, TAIL_START};
use crate::constants::FORMAT_VERSION;
use crate::cursor::hex;
use crate::layout::{INDEX_FILE, METADATA_FILE};

impl Manifest {
    /// The bytes of the file. They are a function of the members alone.
    ///
    /// Nothing is refused here: a writer calls [`check`](Self::check) first.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut json = Json(format!("{PREFIX}{FORMAT_VERSION}"));
        json.member("required").texts(&self.required);
        json.member("optional").texts(&self.optional);
        json.member("identity").text(&hex(&self.identity));
        json.member("source")
            .raw("{\"name\":")
            .text(&self.source.name);
        json.member("fingerprint")
            .text_or_null(self.source.fingerprint.as_deref())
            .raw("}");
        json.member("created").text(&self.created);
        json.member("writer").text(&self.writer);
        json.member("samples").integer(self.samples);
        json.member("payload_bytes").integer(self.payload_bytes);
        json.member("stored_bytes").integer(self.stored_bytes);
        json.member("fields")
            .list(self.schema.fields(), |json, field| {
                json.raw("{\"name\":").text(&field.name);
                json.member("type").text(field.field_type.name());
                json.member("nullable")
                    .raw(if field.nullable { "true" } else { "false" });
                if let Some(description) = &field.description {
                    json.member("description").text(description);
                }
                json.raw("}");
            });
        json.member("codec")
            .raw("{\"name\":")
            .text(self.codec.name())
            .raw("}");
        json.member("alignment")
            .integer(1_u64 << self.align.min(63));
        if let Some(user) = &self.user {
            json.member("user").raw("{");
            for (position, (key, value)) in user.iter().enumerate() {
                json.raw(if position == 0 { "" } else { "," });
                json.text(key).raw(":").text(value);
            }
            json.raw("}");
        }
        if let Some(media_type) = &self.media_type {
            json.member("media_type").text(media_type);
        }
        json.member("metadata").file(METADATA_FILE, &self.metadata);
        json.member("index").file(INDEX_FILE, &self.index);
        json.member("shards").list(&self.shards, |json, shard| {
            json.raw("{\"name\":").text(&shard.name);
            json.member("size").integer(shard.size);
            json.member("samples").integer(shard.samples);
            json.member("id").text(&hex(&shard.id));
            json.member("crc32c").crc(shard.crc32c);
            json.sha256(shard.sha256.as_ref()).raw("}");
        });
        let digest = hex(&Sha256::digest(json.0.as_bytes()));
        json.raw(TAIL_START).raw(&digest).raw(TAIL_END);
        json.0.into_bytes()
    }
}

/// Text of JSON, appended to from the front to the back.
struct Json(String);

impl Json {
    fn raw(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    /// A comma, the member's name and a colon.
    fn member(&mut self, name: &str) -> &mut Self {
        self.raw(",\"").raw(name).raw("\":")
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.raw("\"");
        for character in text.chars() {
            match character {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                control if u32::from(control) < 0x20 => {
                    // Writing to a String can't fail.
                    let _written = write!(self.0, "\\u{:04x}", u32::from(control));
                }
                other => self.0.push(other),
            }
        }
        self.raw("\"")
    }

    fn text_or_null(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.raw("null"),
        }
    }

    fn integer(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_string())
    }

    fn crc(&mut self, value: u32) -> &mut Self {
        self.text(&format!("{value:08x}"))
    }

    fn texts(&mut self, texts: &[String]) -> &mut Self {
        self.list(texts, |json, text| {
            json.text(text);
        })
    }

    fn list<T>(&mut self, items: &[T], mut one: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.raw("[");
        for (position, item) in items.iter().enumerate() {
            self.raw(if position == 0 { "" } else { "," });
            one(self, item);
        }
        self.raw("]")
    }

    fn file(&mut self, name: &str, file: &FileInfo) -> &mut Self {
        self.raw("{\"name\":").text(name);
        self.member("size").integer(file.size);
        self.member("crc32c").crc(file.crc32c);
        self.sha256(file.sha256.as_ref()).raw("}")
    }

    fn sha256(&mut self, digest: Option<&[u8; 32]>) -> &mut Self {
        match digest {
            Some(digest) => self.member("sha256").text(&hex(digest)),
            None => self,
        }
    }
}
