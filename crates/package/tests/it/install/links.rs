//! Tests that symlinks in a project cannot lead out of it.

use std::{fs, os::unix::fs::symlink};

use savoir_package::{
    install::{OutsideFolders, UserEdits},
    manifest::Scope,
};

use super::test_project::{TestProject, asked, install, skill};

#[test]
fn symlink_out_of_project_is_rejected() {
    for link in [".claude", ".claude/skills"] {
        let project = TestProject::new();
        fs::create_dir_all(project.home("secrets/skills")).unwrap();
        let parent = project.path(link);
        fs::create_dir_all(parent.parent().unwrap()).unwrap();
        symlink(project.home("secrets"), &parent).unwrap();
        let ready = [project.ready(skill("pdf", "1.0.0", ""), asked())];
        let refused = project.plan(&ready, &["claude-code", "codex"]).unwrap_err();
        assert_eq!(refused.code(), "outside", "{refused}");
        let text = refused.to_string();
        assert!(text.contains(".claude/skills is a link to") && text.contains("secrets"), "{text}");
        assert!(refused.hint().unwrap().contains("--follow-links"));
        assert_eq!(fs::read_dir(project.home("secrets/skills")).unwrap().count(), 0);
        assert!(project.plan(&ready, &["codex"]).is_ok(), "other agents are not concerned");

        let skill_set = project.skill_set().with_outside(OutsideFolders::Follow);
        skill_set
            .apply(&skill_set.install(&ready, &install(&["claude-code"])).unwrap(), &|| ())
            .unwrap();
        assert!(project.path(".claude/skills/pdf/SKILL.md").exists());
        assert!(skill_set.verify(&project.trust()).unwrap().is_empty());
        assert_eq!(project.skill_set().verify(&project.trust()).unwrap_err().code(), "outside");
    }
}

#[test]
fn lock_path_out_of_project_is_rejected() {
    for name in ["savoir.toml", "savoir.lock"] {
        let project = TestProject::new();
        fs::write(project.home("settings.toml"), "[build]\nx = 1\n").unwrap();
        symlink(project.home("settings.toml"), project.path(name)).unwrap();
        let ready = [project.ready(skill("pdf", "1.0.0", ""), asked())];
        assert_eq!(project.plan(&ready, &["codex"]).unwrap_err().code(), "outside");
        assert_eq!(fs::read_to_string(project.home("settings.toml")).unwrap(), "[build]\nx = 1\n");
    }
}

#[test]
fn symlinks_inside_project_are_allowed() {
    let project = TestProject::new();
    fs::create_dir_all(project.path(".agents/skills")).unwrap();
    fs::create_dir(project.path(".claude")).unwrap();
    symlink("../.agents/skills", project.path(".claude/skills")).unwrap();
    project.install(vec![skill("pdf", "1.0.0", "")], &["claude-code", "codex"]);
    assert_eq!(project.problems(), [""; 0]);
    assert!(project.sync(UserEdits::Keep).is_empty());
}

#[test]
fn user_folders_may_be_symlinks() {
    let project = TestProject::new();
    fs::create_dir_all(project.path("dotfiles")).unwrap();
    symlink(project.path("dotfiles"), project.home(".claude")).unwrap();
    let skill_set = project.skill_set_of(Scope::User, &project.home(".config/savoir"));
    let ready = [project.ready(skill("pdf", "1.0.0", ""), asked())];
    skill_set
        .apply(&skill_set.install(&ready, &install(&["claude-code"])).unwrap(), &|| ())
        .unwrap();
    assert!(project.path("dotfiles/skills/pdf/SKILL.md").exists());
}
