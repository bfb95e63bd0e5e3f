//! A page in two languages says the same: the same code, the same links, the same number of headings and rows.

use super::text::{links, read, split};

const TWINS: [(&str, &str); 2] =
    [("README.md", "README.zh.md"), ("docs/troubleshooting.md", "docs/troubleshooting.zh.md")];

/// Links, with those to a page of the same language alike, and without the headings, whose words differ.
fn targets(document: &str) -> Vec<String> {
    let mut targets: Vec<String> = links(document)
        .iter()
        .map(|target| target.replace(".zh.md", ".md").split('#').next().unwrap_or_default().to_owned())
        .collect();
    targets.sort();
    targets
}

fn lines(document: &str, begin: &str) -> usize {
    split(document).1.iter().filter(|line| line.starts_with(begin)).count()
}

#[test]
fn pages_in_two_languages_say_the_same() {
    for (english, chinese) in TWINS {
        let (one, other) = (read(english), read(chinese));
        assert_eq!(split(&one).0, split(&other).0, "code of {english} and {chinese}");
        assert_eq!(targets(&one), targets(&other), "links of {english} and {chinese}");
        for begin in ["#", "|", "- "] {
            assert_eq!(lines(&one, begin), lines(&other, begin), "{begin} of {english} and {chinese}");
        }
    }
}
