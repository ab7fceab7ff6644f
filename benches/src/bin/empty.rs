//! An empty program, as a baseline for the cost of starting a process.

fn main() {}
