//! Evaluates string formatting: `%`, `.format` and templates.

use super::super::value::{MAX_TEXT_BYTES, UNKNOWN, Value};

/// Returns a value as a Python string literal.
pub(super) fn quote_as_python(value: &Value) -> String {
    format!("'{}'", value.text_or_unknown().replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Makes a value from a formatted text, with the taint of its parts.
fn formatted_value(text: String, made_of: &[&Value]) -> Value {
    let is_cut = text.len() > MAX_TEXT_BYTES;
    let mut value = Value { text: Some(text), ..Value::default() };
    value.taint.is_cut = is_cut;
    for part in made_of {
        value.taint.add(&part.all_taint());
    }
    value
}

/// Evaluates `"…%s…" % values`.
pub(super) fn format_percent(template: &Value, values: &Value) -> Value {
    let Some(text) = &template.text else {
        let mut value = Value::tainted(template.all_taint());
        value.taint.add(&values.all_taint());
        return value;
    };
    let list =
        if values.items.is_empty() { std::slice::from_ref(values) } else { &values.items[..] };
    let (mut result, mut rest, mut next) = (String::new(), text.as_str(), 0);
    while let Some(at) = rest.find('%').filter(|_| result.len() <= MAX_TEXT_BYTES) {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            result.push('%');
            rest = after;
            continue;
        }
        let key = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        let behind = key.map_or(rest, |(_, behind)| behind);
        let kind = behind.trim_start_matches(|c: char| "-+ #.".contains(c) || c.is_ascii_digit());
        let Some(letter) = kind.chars().next().filter(|c| "sradioxXfFgGeEc".contains(*c)) else {
            result.push('%');
            continue;
        };
        let value = match key {
            Some((key, _)) => values.under(key),
            None => list.get(next),
        };
        next += usize::from(key.is_none());
        result.push_str(&format_item(value, matches!(letter, 'r' | 'a')));
        rest = &kind[letter.len_utf8()..];
    }
    result.push_str(rest);
    formatted_value(result, &[template, values])
}

fn format_item(value: Option<&Value>, as_code: bool) -> String {
    match value {
        Some(value) if as_code => quote_as_python(value),
        Some(value) => value.text_or_unknown().to_owned(),
        None => UNKNOWN.to_owned(),
    }
}

/// Evaluates `"…{}…{name!r}…".format(…)`.
pub(super) fn format_braces(
    template: &Value,
    positional: &[Value],
    keywords: &[(String, Value)],
) -> Value {
    let mut made_of = vec![template];
    made_of.extend(positional);
    made_of.extend(keywords.iter().map(|(_, value)| value));
    let Some(text) = &template.text else {
        return Value { text: None, ..formatted_value(String::new(), &made_of) };
    };
    let (mut result, mut rest, mut next) = (String::new(), text.as_str(), 0);
    while let Some(at) = rest.find(['{', '}']).filter(|_| result.len() <= MAX_TEXT_BYTES) {
        result.push_str(&rest[..at]);
        let mark = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(mark) {
            result.push_str(mark);
            rest = after;
            continue;
        }
        let Some((field, after)) = rest.split_once('}').filter(|_| mark == "{") else {
            result.push_str(mark);
            continue;
        };
        rest = after;
        let name = field.split([':', '!', '.', '[']).next().unwrap_or_default();
        let value = if name.is_empty() {
            next += 1;
            positional.get(next - 1)
        } else if let Ok(number) = name.parse::<usize>() {
            positional.get(number)
        } else {
            keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value)
        };
        result.push_str(&format_item(value, field.contains("!r") || field.contains("!a")));
    }
    result.push_str(rest);
    formatted_value(result, &made_of)
}

/// Evaluates `Template("…$name…").substitute(name=…)`.
pub(super) fn format_template(template: &Value, keywords: &[(String, Value)]) -> Value {
    let mut made_of = vec![template];
    made_of.extend(keywords.iter().map(|(_, value)| value));
    let mut parts = template.text_or_unknown().split('$');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if result.len() > MAX_TEXT_BYTES {
            break;
        }
        let inner = part.strip_prefix('{');
        let body = inner.unwrap_or(part);
        let end = body.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(body.len());
        let (name, rest) = body.split_at(end);
        let rest = if inner.is_some() { rest.strip_prefix('}').unwrap_or(rest) } else { rest };
        let value = keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        result.push_str(&format_item(value, false));
        result.push_str(rest);
    }
    formatted_value(result, &made_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_placeholders_are_replaced() {
        let one = Value::text("a'b");
        assert_eq!(
            format_percent(&Value::text("f(%r) 5%% %-4s"), &one).text_or_unknown(),
            "f('a\\'b') 5% {}"
        );
        let entry = Value { items: vec![Value::entry("u", Value::text("x"))], ..Value::default() };
        assert_eq!(
            format_percent(&Value::text("%(u)s %(v)r %é"), &entry).text_or_unknown(),
            "x {} %é"
        );
        let positional = [Value::text("x"), Value::text("y")];
        let named = [("n".to_owned(), Value::text("z"))];
        let filled = format_braces(&Value::text("{} {1!r} {n:>4} {{}} }"), &positional, &named);
        assert_eq!(filled.text_or_unknown(), "x 'y' z {} }");
        assert_eq!(format_template(&Value::text("a$n b${n}c"), &named).text_or_unknown(), "az bzc");
    }
}
