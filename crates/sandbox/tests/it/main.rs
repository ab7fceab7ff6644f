//! What a policy does not grant is not there, and what runs can be ended: shown from outside, with
//! this binary as the program inside.
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
