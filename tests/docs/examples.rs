//! Files that stand in the documents load as they are, and those of a quickstart are files of `conf/examples`.

use std::env::VarError;

use streamgate::config::{Config, Environment};

use super::settings::PARTS;
use super::text::{Block, documents, read, split};

/// The machine of whoever follows a page: with a key for the hosted account.
const READER: Environment = Environment { variable, ..Environment::bare(4, 8 << 30) };

fn variable(name: &str) -> Result<String, VarError> {
    if name == "DEEPSEEK_API_KEY" { Ok("sk-example".into()) } else { Err(VarError::NotPresent) }
}

/// Whether a block is a whole file of the gateway and no part of one.
fn is_whole(block: &Block) -> bool {
    let has = |part: &str| block.text.lines().any(|line| line.starts_with(part));
    block.language == "yaml" && has("server:") && has("routes:")
}

#[test]
fn whole_files_in_the_documents_load() {
    let mut held = 0;
    for path in documents() {
        for block in split(&read(&path)).0.iter().filter(|block| is_whole(block)) {
            held += 1;
            if let Err(problems) = Config::parse(&block.text, &READER) {
                panic!("{}: {problems}\n{}", path.display(), block.text);
            }
        }
    }
    assert!(held >= 4, "only {held} files were found");
}

/// Whether a block is a piece of a file of the gateway: it begins with a part of one.
fn is_a_piece(block: &Block) -> bool {
    let first = block.text.lines().find_map(|line| line.split_once(':')).map(|(part, _)| part);
    block.language == "yaml" && !is_whole(block) && first.is_some_and(|part| PARTS.contains(&part))
}

/// A piece lacks what is required, and may have `…` in a digest; but all that it names must be there.
#[test]
fn pieces_of_files_name_settings_that_there_are() {
    let mut held = 0;
    for path in documents() {
        for block in split(&read(&path)).0.iter().filter(|block| is_a_piece(block)) {
            held += 1;
            let Err(problems) = Config::parse(&block.text, &READER) else { continue };
            let unknown = |what: &str| what.contains("unknown key") || what.contains("is not known here");
            let named = problems.iter().find(|problem| unknown(&problem.what));
            assert!(named.is_none(), "{}: {named:?}\n{}", path.display(), block.text);
        }
    }
    assert!(held > 10, "only {held} pieces were found");
}

/// What a newcomer copies is what the tests of `conf/examples` have loaded.
#[test]
fn a_quickstart_shows_the_file_that_it_names() {
    for name in ["vllm", "deepseek", "both"] {
        let page = read(format!("docs/quickstart-{name}.md"));
        let file = format!("conf/examples/quickstart-{name}.yaml");
        assert!(page.contains(&format!("](../{file})")), "the page names {file}");
        let shown: Vec<String> =
            split(&page).0.into_iter().filter(is_whole).map(|block| block.text).collect();
        assert_eq!(shown, [read(&file)], "what the page shows is {file}");
    }
}
