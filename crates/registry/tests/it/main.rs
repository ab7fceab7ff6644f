//! Integration tests of vetting.

#![expect(clippy::print_stderr, reason = "tests tell what they measured and what they left out")]

mod vetting;
