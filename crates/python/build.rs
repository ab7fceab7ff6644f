//! Lets the linker of macOS leave the symbols of Python open, as Linux does by itself.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
