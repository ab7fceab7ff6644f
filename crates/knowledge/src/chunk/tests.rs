use proptest::prelude::*;

use super::*;

fn small(text: &str, tokens: usize, overlap: usize) -> Vec<String> {
    let parts = split(text, Size { tokens, overlap }, estimate_tokens);
    parts.into_iter().map(|part| part.text).collect()
}

#[test]
fn estimates_are_close_to_tokenizers() {
    assert_eq!(estimate_tokens(""), 0);
    assert_eq!(estimate_tokens("the lamp"), 2);
    assert_eq!(estimate_tokens("Goods may be returned within thirty days."), 11);
    assert_eq!(estimate_tokens("知识库"), 3);
    assert_eq!(estimate_tokens("справочник"), 4);
    assert_eq!(estimate_tokens("------------"), 3);
}

#[test]
fn short_text_is_one_chunk() {
    assert_eq!(small("\n\n# One\n\nword\n", 512, 50), ["# One\n\nword"]);
    assert!(small(" \n\t\n", 512, 50).is_empty());
    assert!(small("", 512, 50).is_empty());
}

#[test]
fn sections_are_kept_whole_and_merged() {
    let text = "# A\n\none two three four five\n\n# B\n\none two three four five\n\n# C\n\nsix";
    // Each section has about seven tokens, so that two fit and the cut is at a heading.
    let parts = small(text, 15, 3);
    assert_eq!(parts.len(), 2);
    assert!(parts[0].starts_with("# A") && parts[0].contains("# B"), "{parts:?}");
    assert_eq!(parts[1], "# C\n\nsix");
}

#[test]
fn sentences_are_kept_whole() {
    let text = "One two three four. Five six seven eight. Nine ten eleven twelve. Last words here.";
    for part in small(text, 12, 0) {
        assert!(part.ends_with('.'), "{part}");
    }
}

#[test]
fn overlaps_start_with_a_sentence() {
    let text = "One two three four. Five six. Seven eight nine ten. Eleven twelve more words here.";
    let parts = small(text, 14, 5);
    assert!(parts[1].starts_with("Five six.") || parts[1].starts_with("Seven"), "{parts:?}");
}

#[test]
fn a_code_block_that_fits_is_not_cut() {
    let code = "```rust\nlet a = 1;\nlet b = 2;\n\nlet c = 3;\n```\n";
    let text = format!("Some words before it, and more.\n\n{code}\nSome words after it, and more.");
    let parts = small(&text, 30, 5);
    assert!(parts.iter().any(|part| part.contains(code.trim())), "{parts:?}");
}

#[test]
fn a_code_block_that_does_not_fit_is_cut_between_lines() {
    let lines =
        (0..60).map(|n| format!("let value_{n} = call({n});\n")).collect::<Vec<_>>().concat();
    let text = format!("Before.\n\n```rust\n{lines}```\n");
    for part in small(&text, 60, 10) {
        for line in part.lines() {
            assert!(text.lines().any(|whole| whole == line), "{line:?} is not a whole line");
        }
    }
}

#[test]
fn rows_are_kept_whole() {
    let rows =
        (0..50).map(|n| format!("| item {n} | {n}.50 | in stock |\n")).collect::<Vec<_>>().concat();
    let text = format!("| Item | Price | State |\n|------|-------|-------|\n{rows}");
    for part in small(&text, 40, 10) {
        for line in part.lines() {
            assert!(line.starts_with('|') && line.ends_with('|'), "{line:?}");
        }
    }
}

#[test]
fn a_heading_stays_with_its_text() {
    let filler = "Some words that fill. ".repeat(5);
    let text = format!("{filler}\n\n## Second\n\n{filler}\n\n## Third\n\n{filler}");
    for part in small(&text, 40, 8) {
        assert!(!part.lines().last().unwrap().starts_with('#'), "{part:?}");
    }
}

#[test]
fn languages_without_blanks_are_cut_at_sentences() {
    let text = "知识库可以检索文档。".repeat(40);
    let parts = small(&text, 60, 12);
    assert!(parts.len() > 5);
    assert!(parts.iter().all(|part| part.ends_with('。')), "{parts:?}");
}

#[test]
fn very_long_word_is_split() {
    let parts = small(&"x".repeat(10_000), 50, 10);
    assert!(parts.len() > 10);
    assert_eq!(parts[0].len(), 192);
}

#[test]
fn splitting_takes_linear_time() {
    let hostile = ["# \n", "|", "```\n", "。", "a ", "- x\n", "\n", "`", "\u{301}"];
    for text in hostile {
        let text = text.repeat(300_000 / text.len());
        let begun = std::time::Instant::now();
        split(&text, Size::default(), estimate_tokens);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", text.get(..3));
    }
}

fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z ,.!?]{0,40}",
        "\\PC{0,30}",
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("# ".to_owned()),
        Just("\n```\n".to_owned()),
        Just("\n| a | b |\n".to_owned()),
        Just("- ".to_owned()),
        "[一-龥。]{0,30}",
        "[a-z]{60,200}",
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunks_keep_all_text_within_the_limit(
        text in markdown(),
        tokens in 1_usize..80,
        overlap in 0_usize..20,
    ) {
        let size = Size { tokens, overlap };
        let splitter = Splitter::new(&text, size, estimate_tokens);
        let ends = splitter.words.iter().map(|word| word.range.end);
        let starts = splitter.words.iter().map(|word| word.range.start);
        prop_assert!(std::iter::once(0).chain(ends).zip(starts).all(|(end, start)| end == start));
        let pieces = splitter.pieces();
        let mut fresh = 0;
        let mut before = None;
        for piece in &pieces {
            let sum = |from: usize, to: usize| splitter.sums[to] - splitter.sums[from];
            prop_assert_eq!(piece.fresh, fresh, "nothing is left out");
            prop_assert!(piece.start <= piece.fresh && piece.fresh < piece.end);
            prop_assert!(before < Some(piece.start), "every piece starts later");
            prop_assert!(sum(piece.start, piece.fresh) <= overlap);
            prop_assert!(sum(piece.start, piece.end) <= tokens || piece.end == piece.start + 1);
            (fresh, before) = (piece.end, Some(piece.start));
        }
        prop_assert_eq!(fresh, splitter.words.len());
        let parts = split(&text, size, estimate_tokens);
        for (index, part) in parts.iter().enumerate() {
            prop_assert_eq!(part.index, index as u64);
            prop_assert!(!part.text.trim().is_empty());
            prop_assert!(estimate_tokens(&part.text) <= part.tokens as usize);
        }
        prop_assert_eq!(split(&text, size, estimate_tokens), parts);
    }
}
