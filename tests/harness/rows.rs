//! The rows of `make chaos` are those of the table that people read, and the tests that they name exist.

use std::collections::BTreeSet;
use std::path::Path;

/// What the table names beside black-box tests: tests of the library, and what is measured. They have no score.
const NO_ROWS: [&str; 7] = [
    "STREAMGATE_FULL",
    "g15_*",
    "cluster::health::tests",
    "properties",
    "no_window_gets_more_than_a_burst_and_what_it_earns",
    "reload::watch",
    "cargo bench --bench reload",
];

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The lines of `tests/chaos.rows`: id, place, name.
fn rows() -> Vec<[String; 3]> {
    let row = |line: &str| {
        let mut fields = line.split_whitespace().map(str::to_owned);
        std::array::from_fn(|_| fields.next().expect("an id, a place and a name"))
    };
    read("tests/chaos.rows").lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

/// The table's first column, and its last.
fn table() -> Vec<(String, String)> {
    let text = read("tests/README.md");
    let (_, matrix) = text.split_once("| row | fault | tests |\n").expect("the table");
    let cells = |line: &str| {
        let (ids, rest) = line.trim_matches(['|', ' ']).split_once(" | ").expect("three cells");
        let (_, tests) = rest.rsplit_once(" | ").expect("three cells");
        (ids.to_owned(), tests.to_owned())
    };
    matrix.lines().skip(1).take_while(|line| line.starts_with('|')).map(cells).collect()
}

#[test]
fn every_row_is_in_the_readers_table() {
    let table = table();
    for [id, place, name] in rows() {
        let tells = |(ids, tests): &(String, String)| {
            ids.split([' ', ',']).any(|one| one == id)
                && tests.contains(&place)
                && tests.contains(&format!("`{name}`"))
        };
        assert!(table.iter().any(tells), "tests/README.md has no {id} at {place} with `{name}`");
    }
}

#[test]
fn every_test_of_the_readers_table_is_in_a_row() {
    let rows: BTreeSet<String> = rows().into_iter().map(|[_, _, name]| name).collect();
    for (ids, tests) in table() {
        for name in tests.split('`').skip(1).step_by(2).filter(|name| !NO_ROWS.contains(name)) {
            assert!(rows.contains(name) || name.starts_with("--bench"), "no row runs `{name}` of {ids}");
        }
    }
}

#[test]
fn every_row_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for [id, place, name] in rows() {
        // A file, or a folder whose tests are in several.
        let file = root.join(format!("{place}.rs"));
        let files = match std::fs::read_dir(root.join(&place)) {
            Ok(folder) => folder.map(|entry| entry.expect("an entry").path()).collect(),
            Err(_) => vec![file],
        };
        let stem = name.trim_matches('*');
        let exists = |line: &str| line.contains("fn ") && line.contains(stem);
        let found = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        assert!(found.into_iter().any(|text| text.lines().any(exists)), "{id}: no test {name} in {place}");
    }
}
