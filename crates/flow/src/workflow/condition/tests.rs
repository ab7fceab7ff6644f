use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn result(expression: &str) -> bool {
    let outputs = json!({
        "n-1": "risk", "num": 7, "zero": 0, "half": 0.5, "no": false, "none": null, "empty": "",
        "list": ["a", 1, 2.0, [1]], "obj": {"k": {"x": "y"}, "n": 3}, "nothing": [],
        "evil": "' or 'a' == 'a", "braces": "{{num.output}}", "big": u64::MAX,
    });
    let variables = json!({"topic": "cats"});
    let map = |value: &Value| value.as_object().cloned().unwrap();
    is_true(expression, &Scope::new("the input", &map(&outputs), &map(&variables)))
}

#[test]
fn true_conditions() {
    for expression in [
        "true",
        "TRUE",
        " True ",
        "1",
        "'x'",
        "\"x\"",
        "-1",
        "0.5",
        ".5",
        "1e3",
        "not 0",
        "!0",
        "{{n-1.output}} == 'risk'",
        "{{n-1.output}}.includes('ris')",
        "1 === 1",
        "1 !== 2",
        "{{num.output}} > 5",
        "{{num.output}} >= 7",
        "{{num.output}} <= 7.0",
        "{{half.output}} < 1",
        "{{input}} == 'the input'",
        "{{topic}} == \"cats\"",
        "'{{topic}}!' == 'cats!'",
        "'{{num.output}}' == '7'",
        "'is' in {{n-1.output}}",
        "'x' not in {{n-1.output}}",
        "{{n-1.output}} contains 'sk'",
        "not ({{n-1.output}} contains 'z')",
        "!({{num.output}} < 5)",
        "{{list.output}} contains 'a'",
        "2 in {{list.output}}",
        "{{list.output}}.includes( 1 )",
        "'k' in {{obj.output}}",
        "{{obj.output.k.x}} == 'y'",
        "{{obj.output.n}} % 2 == 1",
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 / 2 == 3.5",
        "-7 % 3 == 2",
        "7 % -3 == -2",
        "7.5 % 2 == 1.5",
        "1 < 2 < 3",
        "'a' + 'b' == 'ab'",
        "'a' < 'b'",
        "true == 1",
        "True + 1 == 2",
        "None == None",
        "{{none.output}} == None",
        "1 == 1.0",
        "true && 1",
        "0 || 1",
        "0 or 'x'",
        "false or true and true",
        "true or false and false",
        "not false and true",
        "- -1 == 1",
        "true or 1 < 'a'",
        "'it\\'s' == \"it's\"",
        "'a\\nb' contains '\\n'",
        "'\\d' == '\\\\d'",
        "{{braces.output}} == '{' + '{num.output}}'",
        "1 != '1'",
        "{{no.output}} == false",
        "{{big.output}} > 9223372036854775807",
        "not not 1",
        "!!1",
        "+1 == 1",
        "'' in ''",
        "{{list.output}} == {{list.output}}",
        "{{obj.output}} != {{list.output}}",
        "1 <2",
        "{{num.output}}>5&&{{num.output}}<9",
        "170141183460469231731687303715884105727 + 1 > 0",
    ] {
        assert!(result(expression), "{expression}");
    }
}

#[test]
fn false_conditions() {
    for expression in [
        "",
        "   ",
        "false",
        "FALSE",
        "0",
        "0.0",
        "''",
        "None",
        "{{zero.output}}",
        "{{empty.output}}",
        "{{no.output}}",
        "{{none.output}}",
        "{{nothing.output}}",
        "{{missing}} == 1",
        "{{missing}} != 1",
        "true or {{missing}}",
        "'{{missing}}' == '{{missing}}'",
        "{{n-1}} == 'risk'",
        "{{ num.output }} > 5",
        "len('a')",
        "__import__('os')",
        "'a'.upper()",
        "{{n-1.output}}.length > 0",
        "1 < 'a'",
        "None < 1",
        "1 + 'a'",
        "'a' * 3 == 'aaa'",
        "'%s' % 1",
        "1 / 0",
        "1 % 0",
        "1.5 % 0",
        "1 in 'a1'",
        "1 contains 1",
        "1 == 2",
        "1 = 1",
        "1 ==",
        "== 1",
        "(1",
        "1)",
        "()",
        "1 2",
        "'a",
        "\"a'",
        "1 not 2",
        "not",
        "a == a",
        "null == None",
        "none == None",
        "AND",
        "1 and",
        "1 & 1",
        "1 | 1",
        "1 ** 2",
        "7 // 2",
        "x = 1",
        "[1]",
        "{1: 2}",
        "lambda: 1",
        "1 if 1 else 0",
        "{{evil.output}} == 'a'",
        "'{{evil.output}}' == 'a'",
        "1 < 3 < 2",
        "1;1",
        "1abc",
        "1e",
        "'a' 'b'",
        "{{list.output}} < {{list.output}}",
        "-'a'",
        "true.includes(1)",
        "'a'.includes 'a'",
        "$1",
        "é",
        "{{obj.output}} + 1",
        "'a' in 1",
        "1 == not 1",
        "\u{0}",
    ] {
        assert!(!result(expression), "{expression}");
    }
}

fn evaluated(expression: &str) -> Result<Evaluation, ConditionError> {
    let outputs = json!({"k": "5", "http": {"x": 1}, "ten": "10", "words": "5 apples"});
    let outputs = outputs.as_object().cloned().unwrap();
    evaluate(expression, &Scope::new(" 5\n", &outputs, &Map::new()))
}

#[test]
fn plus_reads_a_number_from_a_text() {
    for expression in [
        "+{{input}} > 3",
        "+{{input}} == 5",
        "+{{ten.output}} > +{{k.output}}",
        "-+{{k.output}} == -5",
        "+{{k.output}} * 2 == +{{ten.output}}",
        "+'-2.5' < 0",
        "+'+7' == 7",
        "+'1e3' == 1000",
        "+'.5' == 0.5",
        "+true == 1",
    ] {
        assert_eq!(evaluated(expression).map(|found| found.is_true), Ok(true), "{expression}");
    }
    for text in ["5 apples", "", " ", "nan", "inf", "infinity", "0x10", "1,5", "1e400"] {
        let error = evaluated(&format!("+'{text}' == 1 or true")).unwrap_err().to_string();
        assert_eq!(error, format!("`+` does not fit the text '{text}': it is not a number"));
    }
}

#[test]
fn errors_say_what_is_wrong_and_what_to_write() {
    let number = "to use a text as a number, write + before it, for example +{{input}} > 3";
    for (expression, message) in [
        ("{{k.output}} > 3", format!("`>` does not fit the text '5' and the number 3; {number}")),
        ("3 <= {{k.output}}", format!("`<=` does not fit the number 3 and the text '5'; {number}")),
        (
            "{{k.output}} - 0 > 3",
            format!("`-` does not fit the text '5' and the number 0; {number}"),
        ),
        ("-{{k.output}} > 3", format!("`-` does not fit the text '5'; {number}")),
        ("None < 1", "`<` does not fit None and the number 1".to_owned()),
        (
            "1 in 'a1'",
            "the text 'a1' cannot contain the number 1; write the part as a text, such as '5'"
                .to_owned(),
        ),
        ("1 / 0", "it divides by zero".to_owned()),
        (
            "{{k}} == '5'",
            "`{{k}}` has no value; write {{k.output}} for the output of the node".to_owned(),
        ),
        (
            "'{{other.output}}' == '5'",
            "`{{other.output}}` has no value; values here: {{input}}, {{k.output}}, \
             {{http.output}}, {{ten.output}}, {{words.output}}"
                .to_owned(),
        ),
        ("{{input}} = '10'", "at character 11, '=' has no meaning; compare with ==".to_owned()),
        ("é == “yes”", "at character 1, 'é' has no meaning".to_owned()),
        (
            "'é' == “yes”",
            "at character 8, '“' has no meaning; write a text in quotes: 'text'".to_owned(),
        ),
        (
            "{{input}} == yes",
            "at character 14, `yes` has no meaning; write a text in quotes: 'yes'".to_owned(),
        ),
        ("1 == 'a", "at character 6, the quotation mark ' is not closed".to_owned()),
        ("1 2", "at character 3, an operator is missing before `2`".to_owned()),
        ("1 ==", "at character 5, a value is missing at the end".to_owned()),
        ("(1", "at character 3, a closing parenthesis is missing at the end".to_owned()),
        ("1 not 2", "at character 7, `in` is missing after `not` before `2`".to_owned()),
        (
            "{{ input }} == 1",
            "at character 1, write a placeholder like {{input}} or {{NODE.output}}, without spaces"
                .to_owned(),
        ),
        ("{{input}}.length > 1", "at character 10, only .includes(…) can follow a dot".to_owned()),
    ] {
        assert_eq!(evaluated(expression).unwrap_err().to_string(), message, "{expression}");
    }
    let long = evaluated(&format!("'{}' < 1", "é".repeat(100))).unwrap_err().to_string();
    assert!(long.contains(&format!("the text '{}…'", "é".repeat(40))), "{long}");
}

#[test]
fn comparisons_of_numbers_in_texts_are_noted() {
    let notes = |expression| evaluated(expression).unwrap().notes;
    let number = "to use a text as a number, write + before it, for example +{{input}} > 3";
    assert_eq!(
        notes("{{ten.output}} > '3'"),
        [format!("the text '10' and the text '3' are compared as texts; {number}")]
    );
    assert_eq!(
        notes("{{k.output}} == 5"),
        [format!("the text '5' and the number 5 are never equal; {number}")]
    );
    for expression in [
        "+{{ten.output}} > 3", "{{k.output}} == '5'", "'a' < 'b'", "{{words.output}} != 5",
        "{{http.output.x}} == 1",
    ] {
        assert_eq!(notes(expression), [""; 0], "{expression}");
    }
}

#[test]
fn depth_and_length_have_bounds() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(result(&nested(limits::MAX_EXPRESSION_DEPTH)));
    assert!(!result(&nested(limits::MAX_EXPRESSION_DEPTH + 1)));
    assert!(!result(&nested(4000)));
    assert!(!result(&format!("{}1", "!!".repeat(4000))));
    assert!(!result(&format!("{}1", "-".repeat(5000))));
    assert!(result(&format!("1{}", "+1".repeat(4000))));
    assert!(result(&format!("1{}", " or 1".repeat(1900))));
    assert!(!result(&format!("1{}", " ".repeat(limits::MAX_EXPRESSION_CHARS))));
    assert!(!result(&format!("'a'{}", ".includes('a')".repeat(500))));
}

#[test]
fn texts_do_not_grow_without_bounds() {
    let (none, long) = (Map::new(), "x".repeat(1 << 20));
    let scope = Scope::new(&long, &none, &none);
    assert!(is_true("{{input}} + 'a' > 'a'", &scope));
    assert!(!is_true(&format!("'{}' > 'a'", "{{input}}".repeat(900)), &scope));
    assert!(!is_true(&format!("{{{{input}}}}{} > 'a'", " + {{input}}".repeat(700)), &scope));
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC{0,60}") {
        result(&text);
    }

    /// Random sequences of valid tokens get further in the parser than random text.
    #[test]
    fn random_token_sequences_do_not_panic(words in prop::collection::vec(prop::sample::select(vec![
        "1", "0", "2.5", "1e400", "-", "+", "*", "/", "%", "(", ")", "'a'", "\"{{input}}\"", "'\\", "{{num.output}}",
        "{{list.output}}", "{{obj.output}}", "{{x}}", "==", "!=", "===", "<", ">=", "and", "or", "not", "in",
        "contains", ".includes(", "!", "&&", "||", "None", "true", "é", ".", "170141183460469231731687303715884105727",
    ]), 0..24)) {
        result(&words.join(" "));
        result(&words.concat());
    }

    #[test]
    fn whole_numbers_compare_as_numbers_do(a in -1000_i64..1000, b in -1000_i64..1000) {
        let less = format!("{a} < {b}");
        let sum = format!("{a} + {b} == {}", a + b);
        prop_assert_eq!(result(&less), a < b);
        prop_assert!(result(&sum));
        prop_assert_eq!(result(&format!("{a} % {b} >= 0")), b > 0 || (b < 0 && a % b == 0));
    }
}
