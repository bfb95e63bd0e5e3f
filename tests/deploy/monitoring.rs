//! What is in `deploy/` for Prometheus and Grafana: every query is one, and every metric and label it names exists.
//!
//! What exists is what docs/operations.md lists, which another test holds against a scrape.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::parser::{self, Expr, LabelModifier, VectorSelector};
use promql_parser::util::{ExprVisitor, walk_expr};
use serde_json::Value;

use crate::{read, yaml};

/// The metrics of docs/operations.md with their labels, and those that every process has.
fn known() -> BTreeMap<String, BTreeSet<String>> {
    let text = read("docs/operations.md");
    let table = text.split("## Metrics").nth(1).expect("the section").split("\n## ").next().expect("its end");
    let mut known = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels: BTreeSet<String> = cells[2]
            .split([',', ';'])
            .map(|label| label.trim().to_owned())
            .filter(|label| !label.is_empty())
            .collect();
        for name in cells[1].split(',') {
            let name = name.trim().trim_matches('`');
            let name =
                if name.starts_with("gen_ai") { name.to_owned() } else { format!("streamgate_{name}") };
            known.insert(name, labels.clone());
        }
    }
    for name in ["up", "process_open_fds", "process_max_fds", "process_cpu_seconds_total"] {
        known.insert(name.to_owned(), BTreeSet::new());
    }
    assert!(known.len() > 40, "only {} metrics are listed", known.len());
    known
}

/// What a query names.
#[derive(Default)]
struct Names {
    /// Metrics, each with the labels it is picked by.
    metrics: Vec<(String, Vec<String>)>,
    /// Labels it is summed by.
    grouped: Vec<String>,
}

impl Names {
    fn select(&mut self, selector: &VectorSelector) {
        let labels = selector.matchers.matchers.iter().map(|matcher| matcher.name.clone()).collect();
        self.metrics.push((selector.name.clone().expect("a metric is named"), labels));
    }
}

impl ExprVisitor for Names {
    type Error = String;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool, String> {
        match expr {
            Expr::VectorSelector(selector) => self.select(selector),
            Expr::MatrixSelector(matrix) => self.select(&matrix.vs),
            Expr::Aggregate(aggregate) => {
                if let Some(LabelModifier::Include(labels)) = &aggregate.modifier {
                    self.grouped.extend(labels.labels.iter().cloned());
                }
            }
            _ => {}
        }
        Ok(true)
    }
}

/// Holds a query against what there is.
fn check(query: &str, known: &BTreeMap<String, BTreeSet<String>>) {
    let parsed = parser::parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let mut names = Names::default();
    walk_expr(&mut names, &parsed).expect("nothing stops it");
    assert!(!names.metrics.is_empty(), "{query} names no metric");
    let mut labels: BTreeSet<&str> = ["instance", "job", "le"].into();
    for (name, _) in &names.metrics {
        labels.extend(labels_of(name, known, query).iter().map(String::as_str));
    }
    for (name, picked) in &names.metrics {
        let own = labels_of(name, known, query);
        for label in picked {
            let is_scraped = ["instance", "job"].contains(&label.as_str());
            assert!(is_scraped || own.contains(label), "{query}: {name} has no label {label}");
        }
    }
    for label in &names.grouped {
        assert!(labels.contains(label.as_str()), "{query}: nothing has a label {label}");
    }
}

fn labels_of<'k>(
    name: &str,
    known: &'k BTreeMap<String, BTreeSet<String>>,
    query: &str,
) -> &'k BTreeSet<String> {
    let series = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    let found = known.get(name).or_else(|| known.get(series?).filter(|_| name.contains("_seconds_")));
    found.unwrap_or_else(|| panic!("{query}: there is no metric {name}"))
}

#[test]
fn every_alert_is_a_query_of_what_exists_and_has_its_page() {
    let known = known();
    let rules: Value = yaml("deploy/prometheus/alerts.yaml");
    let page = read("docs/alerts.md");
    let mut alerts = BTreeSet::new();
    for rule in rules["groups"][0]["rules"].as_array().expect("rules") {
        let name = rule["alert"].as_str().expect("a name");
        check(rule["expr"].as_str().expect("a query"), &known);
        let severity = rule["labels"]["severity"].as_str().expect("a severity");
        assert!(["page", "ticket"].contains(&severity), "{name}: {severity}");
        let runbook = rule["annotations"]["runbook"].as_str().expect("a runbook");
        assert_eq!(runbook, format!("docs/alerts.md#{}", name.to_lowercase()));
        let section =
            page.split(&format!("\n## {name}\n")).nth(1).unwrap_or_else(|| panic!("no section {name}"));
        let says_page = section.trim_start().starts_with("*page.*");
        assert_eq!(says_page, severity == "page", "{name}: the page and the rule differ");
        assert!(alerts.insert(name.to_owned()), "{name} stands twice");
    }
    let sections = page.lines().filter(|line| line.starts_with("## Streamgate")).count();
    assert_eq!(sections, alerts.len(), "a section without an alert");
}

#[test]
fn every_panel_of_the_dashboard_shows_what_exists() {
    let known = known();
    let board: Value = serde_json::from_str(&read("deploy/grafana/streamgate.json")).expect("JSON");
    let mut ids = BTreeSet::new();
    let mut queries = 0;
    for panel in board["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64()), "{title}: its id stands twice");
        let place = |key: &str| panel["gridPos"][key].as_u64().expect("a place");
        assert!(place("x") + place("w") <= 24, "{title} is out of the grid");
        let targets = panel["targets"].as_array().map_or(&[][..], Vec::as_slice);
        assert!(panel["type"] == "row" || !targets.is_empty(), "{title} shows nothing");
        for target in targets {
            let query = target["expr"].as_str().expect("a query").replace("$instance", "gateway.*");
            check(&query, &known);
            queries += 1;
        }
    }
    assert!(queries > 30, "only {queries} queries");
}
