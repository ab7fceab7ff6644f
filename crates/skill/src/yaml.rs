//! Reads and writes YAML frontmatter: a tree of values with their byte positions, plain scalars
//! resolved by the YAML version of the system, and a writer that quotes only where necessary.

pub mod resolve;
pub mod write;

mod node;
mod plain;
mod tree;

pub use node::{Entry, Node, NodeData, Style};
pub use resolve::YamlVersion;
pub use tree::{ErrorKind, Tree, YamlError, YamlNote, YamlNoteKind};
