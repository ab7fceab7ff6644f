use proptest::prelude::*;
use savoir_lint::Source;

use super::*;
use crate::{
    check::{self, Options},
    skill::{Parameter, ParameterKind, Runner, Tool},
};

const IMPORT: &str = "from gaia.agents.base.tools import tool\n";

fn only(source: &str) -> Function {
    let mut module = parse(source).unwrap_or_else(|error| panic!("{error}: {source}"));
    assert_eq!(module.functions.len(), 1, "{source}");
    module.functions.remove(0)
}

fn tool(name: &str, parameters: &[(&str, ParameterKind, bool)]) -> Tool {
    let parameter = |(name, kind, required): &(&str, ParameterKind, bool)| Parameter {
        name: (*name).to_owned(),
        kind: *kind,
        required: *required,
        description: String::new(),
        default: None,
    };
    Tool {
        name: name.to_owned(),
        description: String::new(),
        parameters: parameters.iter().map(parameter).collect(),
        returns: None,
        atomic: false,
        examples: Vec::new(),
        runner: Runner::Python { function: name.to_owned() },
    }
}

fn mismatches(tool: &Tool, source: &str) -> Vec<String> {
    let module = parse(source).unwrap_or_else(|error| panic!("{error}: {source}"));
    compare_tools(&[tool.into()], &module).iter().map(ToString::to_string).collect()
}

#[test]
fn example_of_the_specification_matches() {
    let source = format!(
        "{IMPORT}\n@tool\ndef greet(name: str) -> dict:\n    \"\"\"Return a greeting for the given name.\"\"\"\n    \
         return {{\"message\": f\"Hello, {{name}}!\"}}\n"
    );
    assert_eq!(
        mismatches(&tool("greet", &[("name", ParameterKind::String, true)]), &source),
        [""; 0]
    );
    let function = only(&source);
    assert_eq!(function.docstring.as_deref(), Some("Return a greeting for the given name."));
    assert_eq!(function.returns, Some(ParameterKind::Object));
    assert_eq!(function.span.slice(&source), "greet");
    assert_eq!(function.decorator.expect("decorated").span.slice(&source), "tool");
    assert_eq!(function.parameters[0].span.slice(&source), "name");
}

#[test]
fn the_decorator_is_found_under_every_name() {
    for (import, decorator, is_tool) in [
        (IMPORT, "@tool", true),
        (IMPORT, "@tool()", true),
        (IMPORT, "@tool(atomic=True, colour='red')", true),
        (IMPORT, "@other\n@tool", true),
        ("", "@tool", true),
        ("from gaia.agents.base.tools import *\n", "@tool", true),
        ("from gaia.agents.base.tools import tool as t\n", "@t", true),
        ("from gaia.agents.base.tools import tool as t\n", "@t(atomic=False)", true),
        ("import gaia.agents.base.tools as t\n", "@t.tool", true),
        ("import gaia.agents.base.tools\n", "@gaia.agents.base.tools.tool", true),
        ("from gaia.agents.base import tools\n", "@tools.tool(atomic=True)", true),
        ("from gaia.agents import base as b\n", "@b.tools.tool", true),
        (
            "try:\n    from gaia.agents.base.tools import tool\nexcept ImportError:\n    from stub import tool\n",
            "@tool",
            true,
        ),
        ("from langchain import tool\n", "@tool", false),
        ("from .gaia.agents.base.tools import tool\n", "@tool", false),
        ("import other as t\n", "@t.tool", false),
        (IMPORT, "@staticmethod", false),
        (IMPORT, "@tools.tool", false),
        (IMPORT, "", false),
    ] {
        let source = format!("{import}\n{decorator}\ndef f():\n    'Does.'\n");
        assert_eq!(only(&source).decorator.is_some(), is_tool, "{source}");
    }
    let source = format!("{IMPORT}\n@tool(atomic=True)\ndef f(): pass\n");
    assert!(only(&source).decorator.expect("decorated").atomic);
}

#[test]
fn functions_of_the_module_scope_count() {
    let source = "if True:\n    def a(): pass\nelif x:\n    def b(): pass\nelse:\n    async def c(): pass\n\
                  try:\n    def d(): pass\nexcept E:\n    def e(): pass\nelse:\n    def f(): pass\nfinally:\n    \
                  def g(): pass\nwith x:\n    def h(): pass\nclass K:\n    def no(self): pass\ndef i():\n    def no(): pass\n";
    let module = parse(source).unwrap();
    let names: Vec<_> = module.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
    assert!(module.function("c").unwrap().is_async && !module.function("a").unwrap().is_async);
}

#[test]
fn annotations_by_their_base() {
    use ParameterKind::{Array, Boolean, Integer, Number, Object, String};
    for (annotation, kind) in [
        ("str", Some(String)),
        ("int", Some(Integer)),
        ("float", Some(Number)),
        ("bool", Some(Boolean)),
        ("list", Some(Array)),
        ("tuple", Some(Array)),
        ("dict", Some(Object)),
        ("list[str]", Some(Array)),
        ("List[int]", Some(Array)),
        ("typing.List[int]", Some(Array)),
        ("tuple[int, ...]", Some(Array)),
        ("dict[str, list[int]]", Some(Object)),
        ("Dict[str, Any]", Some(Object)),
        ("Optional[str]", Some(String)),
        ("typing.Optional[list[str]]", Some(Array)),
        ("str | None", Some(String)),
        ("None | int", Some(Integer)),
        ("Union[str, None]", Some(String)),
        ("Union[None, Optional[bool]]", Some(Boolean)),
        ("Annotated[float, 'metres']", Some(Number)),
        ("\"str\"", Some(String)),
        ("'Optional[\"int\"]'", Some(Integer)),
        ("\"list[str] | None\"", Some(Array)),
        ("str | int", None),
        ("Union[str, int]", None),
        ("Any", None),
        ("Path", None),
        ("Literal['a']", None),
        ("Sequence[str]", None),
        ("None", None),
        ("'not python ('", None),
        ("1 + 1", None),
    ] {
        let function = only(&format!("def f(a: {annotation}): pass\n"));
        assert_eq!(function.parameters[0].annotation, kind, "{annotation}");
    }
}

#[test]
fn parameters_of_every_kind() {
    let function =
        only("def f(a, /, b=-1, *args, c=[1, {'k': None}], d=g(), e: str = 'x', **kw): ...\n");
    let names: Vec<_> = function.parameters.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    let defaults: Vec<_> = function.parameters.iter().map(|one| one.default.clone()).collect();
    let values = [Some("-1"), Some(r#"[1,{"k":null}]"#), None, Some("\"x\"")];
    let values = values.map(|text| text.map(|text| serde_json::from_str(text).unwrap()));
    assert_eq!(defaults[1..], values);
    assert!(!function.parameters[0].has_default && function.parameters[3].has_default);
    assert!(function.has_args && function.has_kwargs);
}

#[test]
fn docstrings() {
    for (body, docstring) in [
        ("'''One.\n\n        Two\n          deep\n    '''", Some("One.\n\nTwo\n  deep")),
        ("'a' 'b'", Some("ab")),
        ("r'raw'", Some("raw")),
        ("'  '", None),
        ("''", None),
        ("f'{x}'", None),
        ("b'bytes'", None),
        ("pass", None),
        ("x = 'no'", None),
    ] {
        assert_eq!(
            only(&format!("def f():\n    {body}\n")).docstring.as_deref(),
            docstring,
            "{body}"
        );
    }
}

#[test]
fn every_kind_of_mismatch_is_found() {
    let search = tool(
        "search",
        &[("query", ParameterKind::String, true), ("limit", ParameterKind::Integer, false)],
    );
    let mismatches = |signature: &str| mismatches(&search, &format!("{IMPORT}{signature}\n"));
    let good = "@tool\ndef search(query: str, limit: int = 5):\n    'Searches.'";
    assert_eq!(mismatches(good), [""; 0]);
    assert_eq!(
        mismatches("@tool\ndef search(query, limit: Path = 5, *a, **k):\n    'Searches.'"),
        [""; 0]
    );
    assert_eq!(mismatches("x = 1"), ["`tools.py` has no function `search`"]);
    assert_eq!(
        mismatches("search = lambda query, limit=5: 1"),
        ["`tools.py` has no function `search`"]
    );
    assert_eq!(
        mismatches("def search(query, limit=5):\n    'Searches.'"),
        ["the function `search` is not decorated with `@tool`"]
    );
    assert_eq!(
        mismatches(&format!("{good}\n@tool\ndef more():\n    'More.'\n\ndef less(): pass")),
        ["the function `more` is decorated with `@tool`, but not declared"]
    );
    assert_eq!(
        mismatches("@tool\ndef search(query, count=5):\n    'Searches.'"),
        [
            "the function `search` does not take the parameter `limit`",
            "the parameter `count` of the function `search` is not declared",
        ]
    );
    assert_eq!(
        mismatches("@tool\ndef search(query='', *, limit):\n    'Searches.'"),
        [
            "`query` of `search` is required, but the function has a default for it",
            "`limit` of `search` is optional, but the function has no default for it",
        ]
    );
    assert_eq!(
        mismatches("@tool\ndef search(query: list[str], limit: float = 5):\n    'Searches.'"),
        [
            "`query` of `search` has the type `string`, but the function takes `array`",
            "`limit` of `search` has the type `integer`, but the function takes `number`",
        ]
    );
    assert_eq!(
        mismatches("@tool\ndef search(query, limit=5): ..."),
        ["the function `search` has no docstring"]
    );
}

#[test]
fn misspelt_function_is_suggested() {
    let module = parse(&format!("{IMPORT}@tool\ndef serch(): 'x'\n")).unwrap();
    let found = compare_tools(&[(&tool("search", &[])).into()], &module);
    let near = MismatchKind::NotInSource { nearest: Some("serch".into()) };
    assert_eq!(found[0].kind, near);
}

#[test]
fn both_manifest_shapes_are_read() {
    let text = "---\nname: demo\ndescription: Shows places. Use in tests.\nmetadata:\n  gaia:\n    tools:\n      \
                - description: nameless\n      - name: f\n        parameters:\n          a: {type: string}\n---\n";
    let checked = check::check(Source::new(text.into()), None, &Options::default());
    let source = "def f(a: int): pass\n";
    let found = compare_tools(&declarations(&checked.reading), &parse(source).unwrap());
    let places: Vec<_> = found
        .iter()
        .map(|one| (one.declared.unwrap().slice(text), one.source.unwrap().slice(source)))
        .collect();
    assert_eq!(places, [("f", "f"), ("f", "f"), ("a", "a"), ("a", "a")]);
}

#[test]
fn invalid_python_is_reported_with_its_position() {
    let error = parse("def f(:\n    pass\n").unwrap_err();
    assert_eq!(error.span.start, 6, "{error}");
    assert!(error.message.starts_with("expected"), "{error}");
    assert_eq!(parse("a = 1\0").unwrap_err().span, Span::new(5, 6));
    assert_eq!(parse_bytes(b"a = '\xff'").unwrap_err().message, "byte 5 is not valid UTF-8");
    assert!(parse(&" ".repeat(limits::MAX_FILE_BYTES + 1)).is_err());
    assert!(parse("\u{feff}def f(): pass\r\n").is_ok());
    assert!(parse("").is_ok());
}

#[test]
fn deep_nesting_is_refused() {
    let n = 100_000;
    let repeat = |unit: &str| unit.repeat(limits::MAX_FILE_BYTES / unit.len());
    for source in [
        format!("x = {}{}", "(".repeat(n), ")".repeat(n)),
        format!("x = {}{}", "[".repeat(n), "]".repeat(n)),
        "(".repeat(n),
        "[".repeat(n),
        "{".repeat(n),
        repeat("{a:"),
        repeat("f("),
        repeat("not "),
        repeat("-"),
        repeat("~"),
        repeat("await "),
        repeat("a+"),
        repeat("a**"),
        repeat("a."),
        repeat("lambda a,b:"),
        repeat("a if a else "),
        repeat("if a:"),
        repeat("if a,b:"),
        repeat("f\"{"),
        repeat("f'{f\"{"),
        repeat("f'{'"),
        repeat("x[1:"),
        format!("x = a{}", "()".repeat(n)),
        format!("x = a{}", "[0]".repeat(n)),
        format!("x = a{}", ".b".repeat(n)),
        format!("x = a{}", "+a".repeat(n)),
        format!("x = f{}{{1{}", "'{".repeat(n), "}'".repeat(n)),
        format!("match x:\n case {}", "[".repeat(n)),
        format!("match x:\n case {}", "-".repeat(n)),
        format!("'{}", "(".repeat(n)),
        format!("f'{{'{}", "(".repeat(n)),
        format!("f'{{'{}", "[".repeat(4_000)),
        format!("def f(a: '{}'): pass", "(".repeat(n)),
        repeat("def f(a: '"),
        repeat("@a\n"),
        repeat("else:"),
        repeat("class a(b):"),
        repeat("with a as b,"),
        repeat("import a;"),
        repeat("\\\n"),
    ] {
        // What matters is that it comes back; most of it is refused.
        let _ = parse(&source);
    }
    assert!(parse(&"(".repeat(n)).unwrap_err().message.contains("deeper than 1000"));
    let lines = (0..1_400).map(|level| " ".repeat(level) + "if x:\n");
    let deep_blocks = lines.collect::<String>();
    let _ = parse(&deep_blocks);
    let _ = parse(&format!("(\n{deep_blocks}"));
}

#[test]
fn wide_code_is_accepted() {
    let rows = "    ('a', 1 + 2, f(x)(y), {'k': [1, 2]}, a if b else c),\n".repeat(5_000);
    assert!(parse(&format!("TABLE = [\n{rows}]\n")).is_ok());
    let elif = "elif x == 1 and y.z(3):\n    pass\n".repeat(5_000);
    assert!(parse(&format!("if x:\n    pass\n{elif}")).is_ok());
    let deep = format!("x = {}1{}\n", "(".repeat(150), ")".repeat(150));
    assert!(parse(&deep).is_ok());
}

/// Words of the language in any order, many of them often: what recovers from errors recurses most.
fn random_tokens() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "(", ")", "[", "]", "{", "}", "f'{", "f\"{", "}'", "}\"", "'", "\"", "\"\"\"", "lambda",
        "not ", "-", "**", "await ", "a", ".b", ",", ":", ";", "=", "\n", "\n  ", "\n    ", "if ",
        "else", "for ", " in ", "def f(", "class A:", "@tool", "match x:", "case ", "import a",
        "from . import b", "\\\n", "#", "1", "é", "*", "|", "try:", "with ", "async ", "yield ",
        ":=", "->", "\t", "\r\n", "$", "`", "!",
    ];
    let run = (prop::sample::select(WORDS), prop_oneof![9 => 1..4_usize, 1 => 1..3_000_usize]);
    let text = |runs: Vec<(&str, usize)>| {
        runs.into_iter().map(|(word, times)| word.repeat(times)).collect::<String>()
    };
    prop::collection::vec(run, 0..60).prop_map(text)
}

proptest! {
    #[test]
    fn parsing_arbitrary_text_does_not_panic(source in random_tokens()) {
        if let Ok(module) = parse(&source) {
            for function in module.functions {
                prop_assert_eq!(function.span.slice(&source), function.name);
            }
        }
    }
}
