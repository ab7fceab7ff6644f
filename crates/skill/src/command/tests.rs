//! Tests parsing of command templates and filling in of arguments.

use serde_json::json;

use super::*;

fn parameter(name: &str, kind: ParameterKind) -> Parameter {
    Parameter {
        name: name.into(),
        kind,
        required: false,
        description: String::new(),
        default: None,
    }
}

fn call(command: &str, parameters: &[Parameter], args: &Value) -> Result<Vec<String>, String> {
    let template = CommandTemplate::parse(command).unwrap();
    template
        .interpolate("t", parameters, args.as_object().unwrap())
        .map_err(|error| format!("{}: {error}", error.code()))
}

fn fill(command: &str, args: &Value) -> Vec<String> {
    call(command, &[], args).unwrap()
}

fn refused(command: &str, args: &Value) -> String {
    call(command, &[], args).unwrap_err()
}

#[test]
fn templates() {
    let template =
        CommandTemplate::parse("curl \"x?q={{q}}&n={{n:5}}\" {{v:-v}} {{ z }}\n").unwrap();
    assert_eq!(template.program, "curl");
    let json = serde_json::to_value(&template).unwrap();
    assert_eq!(json["args"][1], "{{v:-v}}");
    let texts: Vec<_> = template.args.iter().map(ArgTemplate::text).collect();
    assert_eq!(texts, ["x?q={{q}}&n={{n:5}}", "{{v:-v}}", "{{", "z", "}}"]);
    assert_eq!(template.variables().collect::<Vec<_>>(), ["q", "n", "v"]);
    assert_eq!(
        template.args[1].fragments(),
        [Fragment::Variable { name: "v".into(), modifier: Some(Modifier::Flag("-v".into())) }]
    );
}

#[test]
fn refused_commands() {
    for (block, error) in [
        ("", CommandError::Empty),
        ("# only a remark\n\n", CommandError::Empty),
        ("'' x", CommandError::Empty),
        ("{{program}} x", CommandError::PlaceholderInProgram),
        ("./{{p:x}}.sh", CommandError::PlaceholderInProgram),
        ("a\nb", CommandError::SeveralCommands),
        ("a 'b", CommandError::UnterminatedQuote('\'')),
    ] {
        assert_eq!(CommandTemplate::parse(block), Err(error), "{block:?}");
        assert_eq!(error.code(), "invalid-command");
    }
}

#[test]
fn flags_and_defaults() {
    assert_eq!(fill("git diff {{s:--staged}}", &json!({"s": true})), ["diff", "--staged"]);
    for value in [json!(false), json!("true"), json!(1), json!(null)] {
        assert_eq!(fill("git diff {{s:--staged}}", &json!({"s": value})), ["diff"]);
    }
    assert_eq!(fill("x {{n:10}}", &json!({"n": 3})), ["3"]);
    assert_eq!(fill("x {{n:10}}", &json!({"n": null})), ["10"]);
    assert_eq!(fill("x {{n:}}", &json!({})), [""]);
    assert_eq!(fill("x '{{m:two words}}'", &json!({})), ["two words"]);
    let mut declared = parameter("n", ParameterKind::Integer);
    declared.default = Some(json!(7));
    let declared = [declared];
    assert_eq!(call("x {{n}}", &declared, &json!({})), Ok(vec!["7".into()]));
    assert_eq!(call("x {{n:9}}", &declared, &json!({})), Ok(vec!["9".into()]));
    let mut flag = parameter("v", ParameterKind::Boolean);
    flag.default = Some(json!(true));
    assert_eq!(call("x {{v:-v}}", &[flag], &json!({})), Ok(vec!["-v".into()]));
}

#[test]
fn one_token_is_one_argument() {
    assert_eq!(fill("x --limit={{n}}", &json!({"n": 5})), ["--limit=5"]);
    assert_eq!(fill("x --limit={{n}} y", &json!({})), ["y"]);
    assert_eq!(fill("x {{a}}-{{b}}", &json!({"b": "2"})), ["-2"]);
    assert_eq!(fill("x \"\" '{{q}}'", &json!({"q": "a; rm -rf 'b'"})), ["", "a; rm -rf 'b'"]);
    assert_eq!(fill("x {{q}} y", &json!({"q": ""})), ["", "y"]);
    assert_eq!(fill("x {{q}}", &json!({"q": "{{r}}", "r": "no"})), ["{{r}}"]);
    assert_eq!(
        fill("x {{o}} {{b}} {{f}}", &json!({"o": {"a": 1}, "b": true, "f": 1.5})),
        ["{\"a\":1}", "true", "1.5"]
    );
}

#[test]
fn lists() {
    assert_eq!(fill("x {{l}} y", &json!({"l": ["a", "b c", 3]})), ["a", "b c", "3", "y"]);
    assert_eq!(fill("x --l={{l}}", &json!({"l": ["a", "b c"]})), ["--l=a b c"]);
    assert_eq!(fill("x {{l}} --l={{l}} y", &json!({"l": []})), ["y"]);
    assert_eq!(fill("x {{l:d}}", &json!({"l": ["a", "b"]})), ["a", "b"]);
}

#[test]
fn values_in_a_url_are_encoded() {
    let args = json!({"q": "a b&c/ü", "l": ["x", "y"]});
    assert_eq!(
        fill("x 'https://h/?q={{q}}&l={{l}}'", &args),
        ["https://h/?q=a%20b%26c%2F%C3%BC&l=x%20y"]
    );
    assert_eq!(fill("x {{q}}://h", &args), ["a b&c/ü://h"]);
    assert_eq!(fill("x {{h:http://h}}/{{n}}", &json!({"n": "a b"})), ["http://h/a%20b"]);
    assert_eq!(fill("x {{u}}", &json!({"u": "https://h/a b"})), ["https://h/a b"]);
    assert_eq!(fill("x 'http://h/{{q}}'", &json!({"q": "-._~A9"})), ["http://h/-._~A9"]);
}

#[test]
fn a_url_may_begin_in_a_value() {
    let args = json!({"a": "http:", "b": "//h", "c": "c d", "e": "e f"});
    assert_eq!(fill("x {{a}}{{b}}/{{c}}{{e}}", &args), ["http://h/c%20de%20f"]);
}

#[test]
fn unclosed_placeholders_are_text() {
    assert_eq!(fill("x {{a {{a:b {{a}", &json!({"a": 1})), ["{{a", "{{a:b", "{{a}"]);
    assert_eq!(fill("x {{a}}{{a", &json!({"a": 1})), ["1{{a"]);
    let hostile = format!("x {}", "{{a:".repeat(100_000));
    assert_eq!(fill(&hostile, &json!({})).len(), 1);
}

#[test]
fn values_that_look_like_options() {
    let refusal = "invalid-parameter: Invalid value for parameter 'q': must not start with '-'";
    assert_eq!(refused("x {{q}}", &json!({"q": "--output=/etc/x"})), refusal);
    assert_eq!(refused("x {{q}}", &json!({"q": ["a", "-b"]})), refusal);
    assert_eq!(refused("x {{q}}.txt", &json!({"q": "-b"})), refusal);
    assert_eq!(fill("x -- {{q}}", &json!({"q": "-b"})), ["--", "-b"]);
    assert_eq!(fill("x -- {{q}}", &json!({"q": ["-b", "-c"]})), ["--", "-b", "-c"]);
    assert_eq!(fill("x --n={{q}}", &json!({"q": "-b"})), ["--n=-b"]);
    assert_eq!(fill("x {{q}}", &json!({"q": -5})), ["-5"]);
    assert!(refused("x {{q}} --", &json!({"q": "-b"})).contains("'q'"));
    assert!(refused("x {{q}}", &json!({"q": "a\0b"})).contains("NUL"));
}

#[test]
fn calls_are_checked_first() {
    let mut required = parameter("q", ParameterKind::String);
    required.required = true;
    let parameters = [required, parameter("n", ParameterKind::Integer)];
    let missing = "missing-parameter: Missing required parameter 'q' for tool 't'";
    assert_eq!(call("x", &parameters, &json!({})), Err(missing.into()));
    assert_eq!(call("x {{q:d}}", &parameters, &json!({"q": null})), Err(missing.into()));
    assert_eq!(
        call("x {{q}}", &parameters, &json!({"q": "a", "n": "5"})),
        Err("invalid-parameter: Invalid value for parameter 'n': expected integer".into())
    );
    let extra = json!({"q": "a", "n": null, "u": "b"});
    assert_eq!(call("x {{q}} {{n}} {{u}}", &parameters, &extra), Ok(vec!["a".into(), "b".into()]));
}

#[test]
fn flags_that_may_lose_their_value() {
    let mut with_default = parameter("d", ParameterKind::Integer);
    with_default.default = Some(json!(1));
    let mut required = parameter("r", ParameterKind::Integer);
    required.required = true;
    let parameters = [parameter("n", ParameterKind::Integer), with_default, required];
    let command = "x -n {{n}} -d {{d}} -r {{r}} -m {{n:5}} -- {{n}} --k=v {{n}} y {{n}} -u {{u}}";
    let template = CommandTemplate::parse(command).unwrap();
    let found: Vec<_> = template.dangling_flags(&parameters).collect();
    assert_eq!(
        found,
        [DanglingFlag { flag: "-n", parameter: "n" }, DanglingFlag { flag: "-u", parameter: "u" }]
    );
}
