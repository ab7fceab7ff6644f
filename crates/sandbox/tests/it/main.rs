//! Integration tests of the sandbox: only granted resources exist inside, and runs can be ended.
//! This test binary is also the program inside.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(
    clippy::cast_sign_loss,
    reason = "the interfaces of the kernel differ in the signs of the same numbers"
)]

mod behaviour;
mod check;
mod isolation;
mod model;
mod support;
