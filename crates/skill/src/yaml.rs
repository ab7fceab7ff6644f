//! YAML as frontmatter needs it: a small tree in which every value knows its bytes, plain scalars
//! resolved by the rules of the system that reads the file, and a writer that quotes what it must.

pub mod resolve;
pub mod write;

mod node;
mod plain;
mod tree;

pub use node::{Entry, Node, NodeData, Style};
pub use resolve::YamlVersion;
pub use tree::{ErrorKind, Tree, YamlError, YamlNote, YamlNoteKind};
