//! Memory that this process does not need any more. It has nothing to do with sandboxes: it is here
//! because unsafe code is.

/// Gives memory that was freed back to the system. The allocator of the C library keeps it otherwise,
/// in each thread that ever needed much; it takes milliseconds where much was freed.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "a call into the C library")]
        // SAFETY: it takes a number, and locks what it looks at.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
