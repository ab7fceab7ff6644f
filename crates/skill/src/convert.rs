//! A skill for another system: what can be said there is said there, what cannot is kept where
//! that format allows extension, and a report tells exactly what happened to every field.

mod fields;

pub(crate) use fields::Fields;
pub use fields::How;
