//! docs/configuration.md is made of the schema: what stands above the mark is written by hand, the tables below it
//! are made here.
//!
//! A description that is missing or thin is mended in `src/config/raw`, where editors have it from too.

use streamgate::config::is_settled_at_start;

use super::settings::{Default, Group, Kind, Setting, groups};
use super::text::{read, root};

const PAGE: &str = "docs/configuration.md";
/// Where the part that is made begins.
const MARK: &str = "<!-- The rest is made of the schema: UPDATE_GOLDEN=1 cargo test --test docs -->";

/// The page that has the whole story of a group.
const PAGES: &[(&str, &str)] = &[
    ("server", "[edge.md](edge.md), [operations.md](operations.md#client-connections)"),
    ("server.listen[]", "[edge.md](edge.md#listeners)"),
    ("server.listen[].tls", "[edge.md](edge.md#tls-and-http2)"),
    ("server.admin", "[reload.md](reload.md#the-admin-listener)"),
    ("server.connections", "[edge.md](edge.md#bounds-on-connections)"),
    ("server.request", "[life-of-a-request.md](life-of-a-request.md)"),
    ("server.shutdown", "[operations.md](operations.md#start-and-end)"),
    ("clusters.*", "[dialects.md](dialects.md#profiles), [operations.md](operations.md#full-busy-and-down)"),
    ("clusters.*.discover", "[reload.md](reload.md#backends-found-by-name)"),
    ("clusters.*.affinity", "[balancing.md](balancing.md#affinity)"),
    ("clusters.*.health", "[health.md](health.md)"),
    ("clusters.*.scrape", "[health.md](health.md#readings)"),
    ("clusters.*.queue", "[operations.md](operations.md#full-busy-and-down)"),
    ("clusters.*.retry", "[operations.md](operations.md#full-busy-and-down)"),
    ("clusters.*.auth", "[operations.md](operations.md#credentials-and-tls-toward-backends)"),
    ("clusters.*.tls", "[operations.md](operations.md#credentials-and-tls-toward-backends)"),
    ("routes[]", "[life-of-a-request.md](life-of-a-request.md)"),
    ("routes[].guard", "[guard.md](guard.md)"),
    ("stream", "[life-of-a-request.md](life-of-a-request.md)"),
    ("timeouts", "[life-of-a-request.md](life-of-a-request.md#when-it-fails)"),
    ("session", "[sessions.md](sessions.md)"),
    ("keys[]", "[keys.md](keys.md)"),
    ("keys[].limits", "[limits.md](limits.md)"),
    ("limits", "[limits.md](limits.md#several-gateways-limitsstore)"),
    ("cors", "[edge.md](edge.md#pages-of-other-origins)"),
    ("log", "[access-log.md](access-log.md)"),
    ("log.usage_rotate", "[usage.md](usage.md#the-file)"),
    ("telemetry", "[traces.md](traces.md)"),
    ("sim[]", "[simulated-engine.md](simulated-engine.md)"),
];

fn tables() -> String {
    let groups = groups();
    let is_group = |path: &str| groups.iter().any(|group| group.path == path);
    let missing: Vec<&str> = PAGES.iter().map(|(path, _)| *path).filter(|path| !is_group(path)).collect();
    assert!(missing.is_empty(), "no groups of the schema: {missing:?}");
    groups.iter().map(table).collect()
}

fn table(group: &Group) -> String {
    let level = if group.path.contains('.') && group.path != "clusters.*" { "###" } else { "##" };
    let mut text = format!("\n{level} `{}`\n\n{}", group.path, group.about.text);
    if let Some((_, pages)) = PAGES.iter().find(|(path, _)| *path == group.path) {
        text += &format!(" More: {pages}.");
    }
    text += "\n\n| setting | type | default | what it does | a change |\n|---|---|---|---|---|\n";
    let rows = group.settings.iter().map(row);
    text + &rows.collect::<String>()
}

fn row(setting: &Setting) -> String {
    let mut what = setting.about.text.clone();
    if let Kind::Words(words) = &setting.kind {
        let told = words.iter().filter(|(_, meaning)| !meaning.is_empty());
        let told: Vec<String> =
            told.map(|(word, meaning)| format!(" `{word}`: {}", inside(meaning))).collect();
        if !told.is_empty() {
            what += &format!("{}.", told.join(";"));
        }
    }
    let change = if is_settled_at_start(&setting.path) { "restart" } else { "reload" };
    let cells = [&format!("`{}`", setting.path), &setting.kind.told(), &default(setting), &what, change];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

/// A sentence as it stands within another.
fn inside(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    match (letters.next(), letters.next()) {
        // No name in capitals.
        (Some(first), Some(second)) if !second.is_uppercase() => {
            let rest = sentence.strip_prefix(first).unwrap_or_default();
            first.to_lowercase().chain(rest.chars()).collect()
        }
        _ => sentence.to_owned(),
    }
}

fn default(setting: &Setting) -> String {
    match &setting.about.default {
        Default::Written { value, words } if words.is_empty() => format!("`{value}`"),
        Default::Written { value, words } => format!("`{value}`: {words}"),
        Default::Told(words) => words.clone(),
        Default::Required(words) if words.is_empty() => "required".into(),
        Default::Required(words) => format!("required: {words}"),
        Default::Missing => String::new(),
    }
}

#[test]
fn the_reference_is_that_of_the_schema() {
    let page = read(PAGE);
    let (above, _) = page.split_once(MARK).expect("the page has its mark");
    let made = format!("{above}{MARK}\n{}", tables());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(root().join(PAGE), &made).expect("it can be written");
    }
    let written = read(PAGE);
    let differing = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert!(made == written, "{PAGE} is not that of the schema (`make golden`): {differing:?}");
}

/// What an editor shows and the page says has to be worth reading: no fewer words than make a sense.
#[test]
fn every_setting_says_what_it_does_and_what_holds_without_it() {
    let mut thin = Vec::new();
    let groups = groups();
    assert!(groups.len() > 30, "only {} groups", groups.len());
    for group in &groups {
        if is_thin(&group.about.text) {
            thin.push(group.path.clone());
        }
        for setting in &group.settings {
            let is_group = matches!(setting.kind, Kind::Group(_));
            let has_default = is_group || setting.about.default != Default::Missing;
            if is_thin(&setting.about.text) || !has_default {
                thin.push(setting.path.clone());
            }
        }
    }
    assert!(thin.is_empty(), "nothing is said of these, or not what holds without them: {thin:?}");
}

fn is_thin(text: &str) -> bool {
    text.split_whitespace().count() < 3
}
