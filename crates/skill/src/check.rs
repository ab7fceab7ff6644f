//! Holding a skill against the rules.
