//! A project cannot lead Savoir out of itself.

use std::{fs, os::unix::fs::symlink};

use savoir_package::{
    install::{OutsideFolders, UserEdits},
    manifest::Scope,
};

use super::bench::{Bench, asked, install, skill};

#[test]
fn a_folder_that_leads_out_is_refused() {
    for link in [".claude", ".claude/skills"] {
        let bench = Bench::new();
        fs::create_dir_all(bench.home("secrets/skills")).unwrap();
        let parent = bench.path(link);
        fs::create_dir_all(parent.parent().unwrap()).unwrap();
        symlink(bench.home("secrets"), &parent).unwrap();
        let ready = [bench.ready(skill("pdf", "1.0.0", ""), asked())];
        let refused = bench.plan(&ready, &["claude-code", "codex"]).unwrap_err();
        assert_eq!(refused.code(), "outside", "{refused}");
        let text = refused.to_string();
        assert!(text.contains(".claude/skills is a link to") && text.contains("secrets"), "{text}");
        assert!(refused.hint().unwrap().contains("--follow-links"));
        assert_eq!(fs::read_dir(bench.home("secrets/skills")).unwrap().count(), 0);
        assert!(bench.plan(&ready, &["codex"]).is_ok(), "other agents are not concerned");

        let shelf = bench.shelf().with_outside(OutsideFolders::Follow);
        shelf.apply(&shelf.install(&ready, &install(&["claude-code"])).unwrap(), &|| ()).unwrap();
        assert!(bench.path(".claude/skills/pdf/SKILL.md").exists());
        assert!(shelf.verify(&bench.trust()).unwrap().is_empty());
        assert_eq!(bench.shelf().verify(&bench.trust()).unwrap_err().code(), "outside");
    }
}

#[test]
fn a_lock_that_leads_out_is_refused() {
    for name in ["savoir.toml", "savoir.lock"] {
        let bench = Bench::new();
        fs::write(bench.home("settings.toml"), "[build]\nx = 1\n").unwrap();
        symlink(bench.home("settings.toml"), bench.path(name)).unwrap();
        let ready = [bench.ready(skill("pdf", "1.0.0", ""), asked())];
        assert_eq!(bench.plan(&ready, &["codex"]).unwrap_err().code(), "outside");
        assert_eq!(fs::read_to_string(bench.home("settings.toml")).unwrap(), "[build]\nx = 1\n");
    }
}

#[test]
fn links_inside_of_the_project_are_fine() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path(".agents/skills")).unwrap();
    fs::create_dir(bench.path(".claude")).unwrap();
    symlink("../.agents/skills", bench.path(".claude/skills")).unwrap();
    bench.install(vec![skill("pdf", "1.0.0", "")], &["claude-code", "codex"]);
    assert_eq!(bench.problems(), [""; 0]);
    assert!(bench.sync(UserEdits::Keep).is_empty());
}

#[test]
fn the_folders_of_a_person_may_be_anywhere() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("dotfiles")).unwrap();
    symlink(bench.path("dotfiles"), bench.home(".claude")).unwrap();
    let shelf = bench.shelf_of(Scope::User, &bench.home(".config/savoir"));
    let ready = [bench.ready(skill("pdf", "1.0.0", ""), asked())];
    shelf.apply(&shelf.install(&ready, &install(&["claude-code"])).unwrap(), &|| ()).unwrap();
    assert!(bench.path("dotfiles/skills/pdf/SKILL.md").exists());
}
