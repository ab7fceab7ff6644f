//! Behaviour of the crate as a whole.

mod convert;
mod corpus;
mod fixpairs;
mod rules;
mod shared;
