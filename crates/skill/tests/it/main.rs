//! Behaviour of the crate as a whole.

mod corpus;
mod fixpairs;
mod rules;
mod shared;
