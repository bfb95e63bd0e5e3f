//! Links between documents lead to a file that is there, and to a heading in it.

use std::path::{Component, Path, PathBuf};

use super::text::{anchors, documents, links, read, root};

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{} leaves the repository", path.display()),
            part => plain.push(part),
        }
    }
    plain
}

fn check(document: &Path, target: &str) -> Result<(), String> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = document.parent().expect("a document stands in a folder");
    let to = if file.is_empty() { document.to_owned() } else { plain(&folder.join(file)) };
    if !root().join(&to).exists() {
        return Err(format!("{}: {target} is not there", document.display()));
    }
    if !heading.is_empty() && !anchors(&read(&to)).iter().any(|anchor| anchor == heading) {
        return Err(format!("{}: {} has no heading {heading}", document.display(), to.display()));
    }
    Ok(())
}

#[test]
fn links_lead_somewhere() {
    let (mut held, mut broken) = (0, Vec::new());
    for document in documents() {
        for target in links(&read(&document)).iter().filter(|target| !target.contains("://")) {
            held += 1;
            broken.extend(check(&document, target).err());
        }
    }
    assert!(held > 150, "only {held} links were held");
    assert!(broken.is_empty(), "{broken:#?}");
}
