//! Returns unused memory to the system. This is unrelated to sandboxes, but needs unsafe code,
//! which only this crate contains.

/// Returns freed memory to the system. Otherwise the C library's allocator keeps it for each thread
/// that ever used much. Takes milliseconds if much was freed.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "a call into the C library")]
        // SAFETY: the function takes only a number, and locks the allocator's data itself.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
