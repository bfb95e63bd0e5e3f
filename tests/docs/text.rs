//! Markdown, as far as the checks need it: files, code blocks, headings, links, names in backticks.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of the repository, by their paths from its root.
pub(crate) fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "tests"] {
        let files = std::fs::read_dir(root().join(folder)).expect("the folder is there");
        let names = files.map(|file| file.expect("it can be read").file_name());
        let documents = names.map(|name| Path::new(folder).join(name));
        found.extend(documents.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found.sort();
    assert!(found.len() > 20, "only {} documents were found", found.len());
    found
}

/// A fenced block: its language and its text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
}

/// The code blocks of a document, and its lines outside them.
pub(crate) fn split(document: &str) -> (Vec<Block>, Vec<&str>) {
    let (mut blocks, mut prose) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for line in document.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                open = Some(Block { language: language.trim().to_owned(), text: String::new() });
            }
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => prose.push(line),
        }
    }
    assert!(open.is_none(), "a code block has no end: {open:?}");
    (blocks, prose)
}

/// The targets of the links in a text, in their order.
pub(crate) fn links(document: &str) -> Vec<String> {
    let prose = split(document).1.join("\n");
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// What headings are called in links, as GitHub has it.
pub(crate) fn anchors(document: &str) -> Vec<String> {
    let (_, prose) = split(document);
    prose
        .iter()
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// What stands between single backticks outside of code blocks.
pub(crate) fn names(document: &str) -> Vec<String> {
    let prose = split(document).1.join("\n");
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn markdown_is_taken_apart() {
    let text = "# A `b.c` [d](e.md)\n```yaml\n# x: [y](z)\n```\n`f` and [g](h.md#i-j)\n";
    let (blocks, prose) = split(text);
    assert_eq!(blocks, [Block { language: "yaml".into(), text: "# x: [y](z)\n".into() }]);
    assert_eq!(prose.len(), 2);
    assert_eq!(links(text), ["e.md", "h.md#i-j"]);
    assert_eq!(names(text), ["b.c", "f"]);
    assert_eq!(anchors("## Who is `let_in`, and - why\n"), ["who-is-let_in-and---why"]);
}
