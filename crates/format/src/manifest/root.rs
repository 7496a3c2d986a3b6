//! The members of a manifest out of its JSON, without a tree of the shards, of which there may be 2^24.
//!
//! Each shard is brought into its final form as it is met. The first that can't be is kept as it is until its turn
//! comes, so that the errors are those of a look at the whole, in the order of the checks.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::ShardInfo;
use super::parse::{check_shard_size, shard};
use crate::codec::Codec;
use crate::error::FormatError;

pub(super) const SHARDS: &str = "shards";

/// The top of a manifest: the list of shards, if it is one, and the tree of everything else. Of members of one name the
/// last counts.
#[derive(Default)]
pub(super) struct Root {
    pub(super) members: Map<String, Value>,
    pub(super) shards: Option<ShardList>,
}

/// Shards of which all is right that can be told of each by itself.
#[derive(Default)]
pub(super) struct ShardList {
    shards: Vec<ShardInfo>,
    /// What stands in the place of the next one.
    odd: Option<Value>,
}

impl ShardList {
    fn push(&mut self, value: Value) {
        // Behind an odd one the rest is read for errors of JSON alone.
        if self.odd.is_none() {
            match shard(&value, self.shards.len(), None) {
                Ok(info) => self.shards.push(info),
                Err(_) => self.odd = Some(value),
            }
        }
    }

    /// The shards of a cache of that codec.
    ///
    /// # Errors
    /// That of the first shard that breaks a rule.
    pub(super) fn finish(mut self, codec: Codec) -> Result<Vec<ShardInfo>, FormatError> {
        for (position, info) in self.shards.iter().enumerate() {
            check_shard_size(info.size, info.samples, position, codec)?;
        }
        if let Some(value) = self.odd {
            let position = self.shards.len();
            self.shards.push(shard(&value, position, Some(codec))?);
        }
        Ok(self.shards)
    }
}

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Root;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Root, A::Error> {
                let mut root = Root::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name != SHARDS {
                        root.members.insert(name, map.next_value()?);
                        continue;
                    }
                    match map.next_value()? {
                        Shards::List(list) => {
                            root.members.remove(SHARDS);
                            root.shards = Some(list);
                        }
                        Shards::Other(value) => {
                            root.members.insert(name, value);
                            root.shards = None;
                        }
                    }
                }
                Ok(root)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The member of that name.
enum Shards {
    List(ShardList),
    Other(Value),
}

impl<'de> Deserialize<'de> for Shards {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrTree;
        impl<'de> Visitor<'de> for ListOrTree {
            type Value = Shards;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shards, A::Error> {
                let mut list = ShardList::default();
                while let Some(value) = seq.next_element()? {
                    list.push(value);
                }
                Ok(Shards::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shards, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Shards::Other)
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Shards, E> {
                Ok(Shards::Other(value.into()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Shards, E> {
                Ok(Shards::Other(value.into()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Shards, E> {
                Ok(Shards::Other(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Shards, E> {
                Ok(Shards::Other(value.into()))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Shards, E> {
                Ok(Shards::Other(value.into()))
            }

            fn visit_unit<E: Error>(self) -> Result<Shards, E> {
                Ok(Shards::Other(Value::Null))
            }
        }
        deserializer.deserialize_any(ListOrTree)
    }
}
