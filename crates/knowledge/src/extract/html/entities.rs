//! Decodes character references: numeric ones, those of Latin-1 and other common names.

/// Names of U+00A0 to U+00FF, in order.
const LATIN_1_ENTITIES: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute",
    "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute",
    "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
    "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde",
    "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave", "uacute", "ucirc",
    "uuml", "yacute", "thorn", "yuml",
];

const OTHER_ENTITIES: [(&str, char); 42] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("hellip", '…'),
    ("mdash", '—'),
    ("ndash", '–'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("lsaquo", '‹'),
    ("rsaquo", '›'),
    ("euro", '€'),
    ("trade", '™'),
    ("bull", '•'),
    ("dagger", '†'),
    ("permil", '‰'),
    ("prime", '′'),
    ("oelig", 'œ'),
    ("OElig", 'Œ'),
    ("scaron", 'š'),
    ("Scaron", 'Š'),
    ("larr", '←'),
    ("uarr", '↑'),
    ("rarr", '→'),
    ("darr", '↓'),
    ("harr", '↔'),
    ("minus", '−'),
    ("infin", '∞'),
    ("ne", '≠'),
    ("le", '≤'),
    ("ge", '≥'),
    ("asymp", '≈'),
    ("alpha", 'α'),
    ("beta", 'β'),
    ("pi", 'π'),
    ("ensp", ' '),
    ("thinsp", ' '),
];

/// The length of the longest known reference.
const MAX_ENTITY_BYTES: usize = 10;

/// Decodes the references in a text; invalid ones stay unchanged.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let end = after.bytes().take(MAX_ENTITY_BYTES + 1).position(|byte| byte == b';');
        let found = end.and_then(|end| Some((resolve(&after[..end])?, end)));
        if let Some((c, end)) = found {
            // Soft hyphens are invisible, so they are removed.
            out.extend(Some(c).filter(|c| *c != '\u{AD}'));
            rest = &after[end + 1..];
        } else {
            out.push('&');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Returns the character of a reference. A non-breaking space becomes a normal space, so that
/// searches match.
fn resolve(name: &str) -> Option<char> {
    let c = if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        let code = match hex {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        char::from_u32(code).filter(|c| *c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER)
    } else if let Some(place) = LATIN_1_ENTITIES.iter().position(|known| *known == name) {
        char::from(0xA0 + place as u8)
    } else {
        OTHER_ENTITIES.iter().find(|(known, _)| *known == name)?.1
    };
    Some(if c == '\u{A0}' { ' ' } else { c })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved() {
        assert_eq!(decode("a&amp;b &lt;&gt; &eacute;&yuml; &#8364;&#x20AC;"), "a&b <> éÿ €€");
        assert_eq!(decode("&nbsp;x&shy;y"), " xy");
        assert_eq!(decode("&#0;&#xD800;"), "\u{FFFD}\u{FFFD}");
    }

    #[test]
    fn invalid_references_stay_unchanged() {
        for text in ["a & b", "&", "&;", "&nothing;", "&amp", "&#;", "&#xyz;", "R&D;é&é;"] {
            assert_eq!(decode(text), text);
        }
    }
}
