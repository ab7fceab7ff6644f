//! Reads a PDF on standard input as `savoir __extract` does, for tests of what starts it.

use std::io;

fn main() -> io::Result<()> {
    savoir_knowledge::extract::child_main(io::stdin().lock(), io::stdout().lock())
}
