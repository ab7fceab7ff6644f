use proptest::prelude::*;

use super::*;

#[test]
fn structure_becomes_markdown() {
    let page = "<!DOCTYPE html><html><head><title>T</title><style>p{}</style></head><body>\
        <nav><a href='/'>Home</a></nav><h1>Returns &amp; refunds</h1>\
        <p>Goods may be\n   <b>returned</b> within <a href=\"x>y\">thirty days</a>.</p>\
        <ul><li>Lamp<li><p>Chair</p><ol><li>red</li><li>blue</li></ol></li></ul>\
        <table><tr><th>Item</th><th>Price</th></tr><tr><td>Lamp</td><td><p>12</p> €</td></tr></table>\
        <h2>Code</h2><pre><code>let a = 1;\n  if (a &lt; 2) {}\n</code></pre><p>End<br>here</p>\
        <script>if (a < b) document.write('<p>no</p>')</script></body></html>";
    let expected = "# Returns & refunds\n\nGoods may be returned within thirty days.\n\n\
        - Lamp\n- Chair\n  1. red\n  2. blue\n\n\
        | Item | Price |\n| Lamp | 12 € |\n\n\
        ## Code\n\n```\nlet a = 1;\n  if (a < 2) {}\n```\n\nEnd\nhere";
    assert_eq!(to_markdown(page), expected);
}

#[test]
fn inline_tags_do_not_split_words() {
    assert_eq!(to_markdown("re<b>turn</b>ed <i>now</i>!"), "returned now!");
    assert_eq!(to_markdown("a<span> b</span>c"), "a bc");
    assert_eq!(to_markdown("<p>one</p>two"), "one\n\ntwo");
    assert_eq!(to_markdown("1 < 2 & 3 > 2"), "1 < 2 & 3 > 2");
}

#[test]
fn images_are_replaced_by_their_alt_text() {
    assert_eq!(to_markdown("see <img src=a.png alt=\"a lamp\"> here"), "see a lamp here");
    assert_eq!(to_markdown("<img src='a=b' alt='x &amp; y'>"), "x & y");
}

#[test]
fn malformed_pages_keep_their_text() {
    assert_eq!(to_markdown("<head><title>x<p>text"), "text");
    assert_eq!(to_markdown("<nav>never closed<p>text</p>"), "never closed\n\ntext");
    assert_eq!(to_markdown("<nav>a<nav>b</nav>c</nav>d"), "d");
    assert_eq!(to_markdown("<p>a</p></p></table></pre></ul>b"), "a\n\nb");
    assert_eq!(to_markdown("a<!-- b -->c<!-- d"), "ac");
    assert_eq!(to_markdown("a<b href=\"x"), "a");
    assert_eq!(to_markdown("<SCRIPT>x</ScRiPt >b"), "b");
    assert_eq!(to_markdown("<pre>a\n```\nb"), "````\na\n```\nb\n````");
    assert_eq!(to_markdown("<svg/>b</svg>"), "b");
    assert_eq!(to_markdown("<h1></h1><p>x</p>"), "x");
    assert_eq!(to_markdown("<td>a<td>b"), "a b");
}

#[test]
fn conversion_takes_linear_time() {
    for piece in
        ["<", "<a", "<a \"", "<!--", "</", "<nav>", "<pre>", "&", "<ul><li>", "<td>", "<tr>"]
    {
        let page = piece.repeat(400_000 / piece.len());
        let begun = std::time::Instant::now();
        to_markdown(&page);
        assert!(begun.elapsed().as_secs() < 20, "{piece}");
    }
}

proptest! {
    #[test]
    fn arbitrary_page_does_not_panic(
        pieces in prop::collection::vec(
            prop_oneof![
                "</?(p|h1|h7|li|ul|ol|pre|td|tr|table|nav|head|script|br|img alt=)[ />]{0,2}",
                "[<>&;/!\"'= \n-]{0,4}",
                any::<String>(),
            ],
            0..60,
        ),
    ) {
        to_markdown(&pieces.concat());
    }
}
