//! Errors for names and options that do not fit, with hints that work.

use super::Machine;

#[test]
fn choosing_skills_without_a_source_is_an_error() {
    let machine = Machine::with_pdf();
    for args in [&["--skill", "pdf"][..], &["--all"], &["--list"], &["--path", "skills"]] {
        let ran = machine.run(&[&["install"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {ran}");
        assert!(ran.stderr.contains("no source"), "{args:?}: {ran}");
        assert!(ran.stderr.contains(&format!("savoir install SOURCE {}", args.join(" "))), "{ran}");
    }
    machine.well(&["install"]);
}
