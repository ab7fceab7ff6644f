use bytes::Bytes;
use savoir_store::{
    Database, Role, Timestamp,
    registry::{
        Actor, AuditAction, AuditFilter, Import, Imported, NewAttestation, NewKey, NewSignature,
        OwnerScope, PackageRecord, Record, Registry, RegistryError, Signer, VersionRecord,
    },
};

use super::{draft, for_each_registry, name, publish, version};

pub(super) async fn export(registry: Registry<'_>) -> Vec<Record> {
    let mut export = registry.export().await.unwrap();
    let mut records = Vec::new();
    loop {
        let page = export.next_page().await.unwrap();
        if page.is_empty() {
            return records;
        }
        records.extend(page);
    }
}

pub(super) async fn import(
    registry: Registry<'_>,
    records: &[Record],
) -> Result<Imported, RegistryError> {
    let mut import: Import<'_> = registry.import(&Actor::operator()).await?;
    for record in records {
        // Serialize each record, as a backup file does.
        let line = serde_json::to_string(record).unwrap();
        import.push(serde_json::from_str(&line).unwrap()).await?;
    }
    import.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_restores_everything() {
    for_each_registry(async |shop| {
        let (registry, alice) = (shop.registry(), shop.alice());
        let acme: OwnerScope = "acme".parse().unwrap();
        publish(shop, &alice, "acme/tool", "1.0.0").await;
        let key = NewKey {
            owner_scope: &acme,
            key_id: "a",
            public_key: "p",
            label: "l",
            account: None,
            proved: false,
        };
        registry.add_key(&alice, key).await.unwrap();
        let mut signed = draft("acme/tool", "1.1.0");
        signed.signatures = vec![NewSignature {
            signer: Signer::Publisher,
            key_id: "a".to_owned(),
            record: "{}".to_owned(),
        }];
        signed.publish(registry, &alice).await.unwrap();
        for text in ["1.0.0", "1.1.0", "2.0.0-rc.1"] {
            publish(shop, &shop.bob(), "other", text).await;
        }
        registry.yank(&shop.bob(), &name("other"), &version("1.1.0"), Some("x")).await.unwrap();
        registry.withdraw(&shop.admin(), &name("other"), &version("1.0.0"), "y").await.unwrap();
        registry.deprecate(&alice, &name("acme/tool"), None, Some("use other")).await.unwrap();
        registry.grant_prefix(&shop.admin(), shop.bob.id, "mcp-").await.unwrap();
        let new = NewAttestation {
            digest: "d".to_owned(),
            finished_at: Timestamp::from_micros(7),
            key_id: "k".to_owned(),
            public_key: Some("p".to_owned()),
            statement: "{\"signed\": 1}".to_owned(),
        };
        let at = (name("acme/tool"), version("1.1.0"));
        registry.add_attestation(&shop.bob(), &at.0, &at.1, &new).await.unwrap();
        let removed = NewAttestation { digest: "r".to_owned(), ..new.clone() };
        registry.add_attestation(&shop.bob(), &at.0, &at.1, &removed).await.unwrap();
        assert!(registry.remove_attestation(&shop.bob(), &at.0, &at.1, "r").await.unwrap());
        let records = export(registry).await;

        // Restore into the other kind of database, where accounts have other ids.
        let folder = tempfile::TempDir::new().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        for email in ["somebody@example.org", "bob@example.org", "alice@example.org"] {
            database.accounts().create(email, "h", Role::User).await.unwrap().unwrap();
        }
        let restored = database.registry(&shop.storage);
        let done = import(restored, &records).await.unwrap();
        assert_eq!((done.packages, done.versions), (2, 5));
        assert_eq!((done.skipped.len(), done.left_out), (0, 0));
        assert_eq!(done.seq, registry.head().await.unwrap() + 1);
        let attested = restored.attestations(&at.0, &at.1, &[]).await.unwrap();
        assert_eq!(
            (attested.len(), attested[0].key_id.as_str(), &attested[0].statement),
            (1, "k", &new.statement)
        );
        let again = restored.add_attestation(&shop.bob(), &at.0, &at.1, &removed).await;
        assert_eq!(again.unwrap_err().code(), "invalid_request", "what was removed stays so");
        for package in [name("acme/tool"), name("other")] {
            let (before, after) =
                (registry.index(&package).await.unwrap(), restored.index(&package).await.unwrap());
            assert_eq!(before, after);
            let (before, after) = (registry.package(&package), restored.package(&package));
            let (before, after) = (before.await.unwrap().unwrap(), after.await.unwrap().unwrap());
            assert_eq!(before.summary, after.summary);
        }
        let tool = restored.version(&name("acme/tool"), &version("1.1.0")).await.unwrap();
        assert_eq!(tool.attested.as_str(), "community");
        assert_eq!(restored.blob(&tool.sha256).await.unwrap().unwrap(), signed.artefact);
        let (alice, _) = database.accounts().by_email("alice@example.org").await.unwrap().unwrap();
        assert_eq!(restored.members(&acme).await.unwrap()[0].user_id, alice.id);
        assert_eq!(tool.published_by, Some(alice.id));
        let again = draft("other", "1.0.0").publish(restored, &Actor::operator()).await;
        assert_eq!(again.unwrap_err().code(), "version_exists", "what was withdrawn stays so");
        let mut copy = draft("more/other", "1.0.0");
        copy.artefact = draft("other", "1.0.0").artefact;
        let again = copy.publish(restored, &Actor::operator()).await;
        assert_eq!(again.unwrap_err().code(), "taken_down", "under no other name either");
        draft("acme/tool", "3.0.0").publish(restored, &Actor::person(&alice)).await.unwrap();
        let (before, after) = (registry.changes(0, 100).await, restored.changes(0, 100).await);
        let before = before.unwrap();
        assert_eq!(after.unwrap()[..before.len()], before);
        database.close().await;
    })
    .await;
}

/// The records without the digests of takedowns, as older versions wrote them.
fn as_written_by_older_version(records: Vec<Record>) -> Vec<Record> {
    let older = |record| match record {
        Record::Package(mut package) => {
            package.versions.iter_mut().for_each(|version| version.taken_down = None);
            Record::Package(package)
        }
        record => record,
    };
    records.into_iter().map(older).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_of_older_backup_keeps_takedowns() {
    for_each_registry(async |shop| {
        let (registry, alice, admin) = (shop.registry(), shop.alice(), shop.admin());
        let (tool, one) = (name("acme/tool"), version("1.0.0"));
        publish(shop, &alice, "acme/tool", "1.0.0").await;
        let early = export(registry).await;
        registry.withdraw(&admin, &tool, &one, "it steals").await.unwrap();
        let late = as_written_by_older_version(export(registry).await);
        let mut copy = draft("copy/tool", "1.0.0");
        copy.artefact = draft("acme/tool", "1.0.0").artefact;
        let operator = Actor::operator();
        for in_use in [false, true] {
            let folder = tempfile::TempDir::new().unwrap();
            let database = Database::open_folder(folder.path()).await.unwrap();
            let restored = database.registry(&shop.storage);
            if in_use {
                draft("more/tool", "1.0.0").publish(restored, &operator).await.unwrap();
            }
            import(restored, &late).await.unwrap();
            let again = copy.publish(restored, &operator).await;
            assert_eq!(again.unwrap_err().code(), "taken_down", "{in_use}");
            database.close().await;
        }
        // A restore of such a backup is rejected if this registry took the content down.
        let folder = tempfile::TempDir::new().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let restored = database.registry(&shop.storage);
        copy.publish(restored, &operator).await.unwrap();
        restored.withdraw(&operator, &name("copy/tool"), &one, "it steals").await.unwrap();
        assert_eq!(import(restored, &early).await.unwrap_err().code(), "taken_down");
        database.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn export_reads_one_snapshot() {
    for_each_registry(async |shop| {
        publish(shop, &shop.alice(), "a", "1.0.0").await;
        let mut export = shop.registry().export().await.unwrap();
        let mut records = export.next_page().await.unwrap();
        publish(shop, &shop.alice(), "b", "1.0.0").await;
        loop {
            let page = export.next_page().await.unwrap();
            if page.is_empty() {
                break;
            }
            records.extend(page);
        }
        let packages = records.iter().filter(|record| matches!(record, Record::Package(_))).count();
        let log = records.iter().filter(|record| matches!(record, Record::Log(_))).count();
        assert_eq!((packages, log), (1, 1));
    })
    .await;
}

pub(super) fn record(package: &str, text: &str, sha256: &str) -> Record {
    let one = VersionRecord {
        version: text.to_owned(),
        integrity: "sha256-x".to_owned(),
        sha256: sha256.to_owned(),
        skill_md: sha256.to_owned(),
        size: 6,
        published_at: 1,
        ..VersionRecord::default()
    };
    Record::Package(Box::new(PackageRecord {
        name: name(package),
        created_by: None,
        created_at: 1,
        updated_at: 1,
        deprecated: None,
        versions: vec![one],
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn import_adds_without_changing_existing_data() {
    for_each_registry(async |shop| {
        let registry = shop.registry();
        let kept = publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        let digest = registry.put_blob(Bytes::from_static(b"import")).await.unwrap();
        let namespace =
            Record::Namespace { name: "acme".to_owned(), created_by: None, created_at: 1 };
        let intruder = Record::Member(savoir_store::registry::MemberRecord {
            owner_scope: "acme".to_owned(),
            user_id: shop.bob.id,
            role: "owner".to_owned(),
            added_by: None,
            added_at: 1,
        });
        let records = [
            namespace,
            intruder,
            record("acme/tool", "9.0.0", &digest),
            record("new", "1.0.0", &digest),
        ];
        let done = import(registry, &records).await.unwrap();
        assert_eq!((done.packages, done.left_out), (1, 2));
        assert_eq!(done.skipped, [name("acme/tool")]);
        let tool = registry.package(&name("acme/tool")).await.unwrap().unwrap();
        assert_eq!((tool.versions.len(), &tool.versions[0].sha256), (1, &kept.sha256));
        assert_eq!(registry.members(&"acme".parse().unwrap()).await.unwrap().len(), 1);
        assert!(registry.version(&name("new"), &version("1.0.0")).await.is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_import_changes_nothing() {
    for_each_registry(async |shop| {
        let (registry, digest) = (shop.registry(), "0".repeat(64));
        let mut import = registry.import(&Actor::operator()).await.unwrap();
        if !shop.place.is_sqlite() {
            // In SQLite, writing waits for the import.
            registry.put_blob(Bytes::from_static(b"for a version that comes")).await.unwrap();
            let busy = registry.import(&Actor::operator()).await.unwrap_err();
            assert_eq!(busy.code(), "exists");
            let swept = registry.sweep(std::time::Duration::ZERO).await;
            assert!(matches!(swept, Ok(0) | Err(RegistryError::Busy)), "{swept:?}");
        }
        import.push(record("good", "1.0.0", &digest)).await.unwrap();
        import.push(record("bad", "no version", &digest)).await.unwrap();
        assert_eq!(import.finish().await.unwrap_err().code(), "invalid_request");
        assert_eq!(registry.package(&name("good")).await.unwrap(), None);
        assert_eq!(registry.head().await.unwrap(), 0);
        assert_eq!(registry.import(&shop.alice()).await.unwrap_err().code(), "not_admin");
        for bad in [
            record("bad", "1.0.0", "../../etc/passwd"),
            Record::Clearance { sha256: "x".to_owned(), package: None, why: String::new() },
            Record::Clearance { sha256: digest.clone(), package: None, why: "y".repeat(5000) },
            Record::Namespace { name: "api".to_owned(), created_by: None, created_at: 1 },
            Record::Member(savoir_store::registry::MemberRecord {
                owner_scope: "*".repeat(9),
                user_id: shop.bob.id,
                role: "owner".to_owned(),
                added_by: None,
                added_at: 1,
            }),
            Record::Log(savoir_store::registry::LogRecord {
                seq: 1,
                done_at: 1,
                account: None,
                token: None,
                act: "published".to_owned(),
                owner_scope: None,
                package: Some("../x".to_owned()),
                version: None,
                details: "{}".to_owned(),
            }),
        ] {
            let mut import = registry.import(&Actor::operator()).await.unwrap();
            import.push(bad.clone()).await.unwrap();
            let error = import.push(record("a", "1.0.0", &digest)).await;
            let error = match error {
                // The same kind of database, where this import waited.
                Ok(()) => import.finish().await.unwrap_err(),
                Err(error) => {
                    import.cancel().await.unwrap();
                    error
                }
            };
            assert!(matches!(error.code(), "invalid_request" | "invalid_name"), "{bad:?} {error}");
        }
        publish(shop, &shop.alice(), "good", "1.0.0").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn import_creates_missing_accounts_on_request() {
    for_each_registry(async |shop| {
        let (registry, accounts) = (shop.registry(), shop.database.accounts());
        let member = |user_id| {
            Record::Member(savoir_store::registry::MemberRecord {
                owner_scope: "acme".to_owned(),
                user_id,
                role: "owner".to_owned(),
                added_by: None,
                added_at: 1,
            })
        };
        let records = [
            Record::Account {
                id: 71,
                email: "alice@example.org".to_owned(),
                admin: true,
                disabled: false,
                deleted: false,
            },
            Record::Account {
                id: 72,
                email: "new@example.org".to_owned(),
                admin: false,
                disabled: false,
                deleted: false,
            },
            Record::Account {
                id: 73,
                email: "root@example.org".to_owned(),
                admin: true,
                disabled: false,
                deleted: false,
            },
            Record::Account {
                id: 74,
                email: "gone@example.org".to_owned(),
                admin: false,
                disabled: true,
                deleted: false,
            },
            Record::Namespace { name: "acme".to_owned(), created_by: Some(72), created_at: 1 },
            member(71),
            member(72),
        ];
        // Anyone could have registered the address of alice here.
        let import = registry.import(&Actor::operator()).await.unwrap();
        let mut import = import.with_accounts("h".to_owned());
        for record in &records {
            import.push(record.clone()).await.unwrap();
        }
        let refused = import.finish().await.unwrap_err();
        assert_eq!(refused.code(), "accounts_exist");
        assert!(refused.to_string().ends_with(": alice@example.org"), "{refused}");
        assert!(registry.members(&"acme".parse().unwrap()).await.unwrap().is_empty());
        for is_kept in [false, true] {
            let import = registry.import(&Actor::operator()).await.unwrap();
            let mut import = import.with_accounts("h".to_owned()).keeping_accounts();
            for record in &records {
                import.push(record.clone()).await.unwrap();
            }
            import.renew().await.unwrap();
            if is_kept {
                let done = import.finish().await.unwrap();
                assert_eq!(
                    done.accounts,
                    ["new@example.org", "root@example.org", "gone@example.org"]
                );
                assert_eq!(
                    (done.administrators, done.left_out),
                    (vec!["root@example.org".to_owned()], 0)
                );
            } else {
                import.cancel().await.unwrap();
                assert!(accounts.by_email("new@example.org").await.unwrap().is_none());
            }
        }
        let (new, hash) = accounts.by_email("new@example.org").await.unwrap().unwrap();
        assert_eq!((new.role, new.active, &*hash), (Role::User, true, "h"));
        let (root, hash) = accounts.by_email("root@example.org").await.unwrap().unwrap();
        assert_eq!((root.role, root.active, &*hash), (Role::Admin, true, "h"));
        let (gone, _) = accounts.by_email("gone@example.org").await.unwrap().unwrap();
        assert!(!gone.active, "a disabled account stays disabled");
        let (alice, _) = accounts.by_email("alice@example.org").await.unwrap().unwrap();
        assert_eq!(alice.role, Role::User, "existing accounts keep their role");
        let members = registry.members(&"acme".parse().unwrap()).await.unwrap();
        let members: Vec<i64> = members.iter().map(|member| member.user_id).collect();
        assert_eq!(members, [shop.alice.id, new.id]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_import_does_not_block_the_next_one_in_sqlite() {
    for_each_registry(async |shop| {
        if !shop.place.is_sqlite() {
            return;
        }
        let (registry, digest) = (shop.registry(), "0".repeat(64));
        // Dropped as if its process had died.
        drop(registry.import(&Actor::operator()).await.unwrap());
        let done = import(registry, &[record("good", "1.0.0", &digest)]).await.unwrap();
        assert_eq!(done.packages, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_contains_clearances() {
    for_each_registry(async |shop| {
        let (registry, admin) = (shop.registry(), shop.admin());
        // More clearances than fit on a page.
        let digest = |number: u32| format!("{number:064x}");
        for number in 0..501 {
            let (tool, why) = (name("acme/tool"), format!("reason {number}"));
            registry.clear(&admin, &digest(number), Some(&tool), &why).await.unwrap();
        }
        assert!(registry.unclear(&admin, &digest(7)).await.unwrap());
        let records = export(registry).await;
        let cleared =
            records.iter().filter(|record| matches!(record, Record::Clearance { .. })).count();
        assert_eq!(cleared, 500);

        let folder = tempfile::TempDir::new().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let restored = database.registry(&shop.storage);
        let done = import(restored, &records).await.unwrap();
        assert_eq!(done.left_out, 0);
        for (number, why) in [(0, Some("reason 0")), (7, None), (500, Some("reason 500"))] {
            let found = restored.cleared(&digest(number), &name("acme/tool")).await.unwrap();
            assert_eq!(found.as_deref(), why);
            let others = restored.cleared(&digest(number), &name("acme/other")).await.unwrap();
            assert_eq!(others, None, "it is for one package");
        }

        // A registry that is not empty keeps its own decisions about clearances.
        let old = [Record::Clearance { sha256: digest(7), package: None, why: "once".to_owned() }];
        assert_eq!(import(registry, &old).await.unwrap().left_out, 1);
        assert_eq!(registry.cleared(&digest(7), &name("acme/tool")).await.unwrap(), None);
        database.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_log_refers_to_the_same_accounts() {
    for_each_registry(async |shop| {
        let (registry, acme) = (shop.registry(), "acme".parse::<OwnerScope>().unwrap());
        let accounts = shop.database.accounts();
        let eve = accounts.create("eve@example.org", "h", Role::User).await.unwrap().unwrap();
        publish(shop, &Actor::person(&eve), "eves", "1.0.0").await;
        publish(shop, &shop.alice(), "acme/tool", "1.0.0").await;
        registry.transfer(&shop.alice(), &acme, shop.alice.id, shop.bob.id).await.unwrap();
        assert!(accounts.delete(&Actor::operator(), eve.id).await.unwrap());
        let records = export(registry).await;

        let folder = tempfile::TempDir::new().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        for number in 0..3 {
            let email = format!("other{number}@example.org");
            database.accounts().create(&email, "h", Role::User).await.unwrap().unwrap();
        }
        let restored = database.registry(&shop.storage);
        let restore = restored.import(&Actor::operator()).await.unwrap();
        let mut restore = restore.with_accounts("h".to_owned());
        for record in records {
            restore.push(record).await.unwrap();
        }
        restore.finish().await.unwrap();
        let number = async |email: &str| {
            database.accounts().by_email(email).await.unwrap().map(|(user, _)| user.id)
        };
        let log = restored.audit(&AuditFilter::default(), None, 100).await.unwrap();
        let of = |act: AuditAction| log.iter().find(|entry| entry.change.act == act).unwrap();
        let moved = &of(AuditAction::Transferred).details;
        assert_eq!(moved["from"].as_i64(), number("alice@example.org").await);
        assert_eq!(moved["to"].as_i64(), number("bob@example.org").await);
        let eves = log.iter().find(|entry| entry.change.package == Some(name("eves"))).unwrap();
        assert_eq!(number("eve@example.org").await, None, "she is deleted still");
        let mut others = database.accounts().list().await.unwrap().into_iter();
        assert!(eves.account.is_some() && others.all(|user| Some(user.id) != eves.account));
        database.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn import_logs_added_versions() {
    for_each_registry(async |shop| {
        let (registry, digest) = (shop.registry(), "0".repeat(64));
        let brought = |space: &str| {
            [
                Record::Namespace { name: space.to_owned(), created_by: None, created_at: 1 },
                Record::Member(savoir_store::registry::MemberRecord {
                    owner_scope: space.to_owned(),
                    user_id: shop.alice.id,
                    role: "owner".to_owned(),
                    added_by: None,
                    added_at: 1,
                }),
                record(&format!("{space}/tool"), "1.0.0", &digest),
                record(&format!("{space}-alone"), "1.0.0", &digest),
            ]
        };
        // Import into an empty registry, then into one with packages.
        for space in ["first", "second"] {
            let done = import(registry, &brought(space)).await.unwrap();
            assert_eq!(done.versions, 2);
            let owner_scope = Some(space.parse::<OwnerScope>().unwrap());
            let filter = AuditFilter { owner_scope, ..AuditFilter::default() };
            let found = registry.audit(&filter, None, 10).await.unwrap();
            let acts: Vec<_> = found.iter().map(|entry| entry.change.act.as_str()).collect();
            assert_eq!(acts, ["published", "member_set", "namespace_created"], "{space}");
            assert_eq!(found[0].details["sha256"], digest);
            assert_eq!(found[0].details["imported"], true);
            assert_eq!(found[1].details["user_id"], shop.alice.id);
            let alone = name(&format!("{space}-alone"));
            let filter = AuditFilter { package: Some(alone.clone()), ..AuditFilter::default() };
            let found = registry.audit(&filter, None, 10).await.unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].owner_scope, Some(alone.owner_scope()));
            assert_eq!(registry.head().await.unwrap(), done.seq);
        }
        let all = registry.audit(&AuditFilter::default(), None, 100).await.unwrap();
        let numbers: Vec<u64> = all.iter().map(|entry| entry.change.seq).collect();
        assert_eq!(numbers, (1..=10).rev().collect::<Vec<_>>(), "without gaps");
    })
    .await;
}
