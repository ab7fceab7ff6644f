//! Reads a PDF from standard input like `savoir __extract`, for the tests of the process that
//! starts it.

use std::io;

fn main() -> io::Result<()> {
    savoir_knowledge::extract::child_main(io::stdin().lock(), io::stdout().lock())
}
