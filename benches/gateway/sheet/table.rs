//! A run as Markdown: the machine, the table of docs/benchmark.md, who was in it, and what there is to remark.

use super::{Entrant, Figure, Sheet};

/// The whole of it.
pub(crate) fn markdown(sheet: &Sheet) -> String {
    let ran: Vec<&Entrant> = sheet.entrants.iter().filter(|entrant| entrant.not_run.is_none()).collect();
    let mut lines = vec![String::new(), machine(sheet), String::new(), head(&ran), rule(&ran)];
    lines.extend(sheet.figures.iter().map(|figure| row(figure, &ran)));
    lines.extend([String::new(), "| who | version |".to_owned(), "|---|---|".to_owned()]);
    lines.extend(sheet.entrants.iter().map(who));
    if !sheet.remarks.is_empty() {
        lines.push(String::new());
    }
    lines.extend(sheet.remarks.iter().map(|one| format!("- {}, {}: {}", one.scenario, one.name, one.text)));
    lines.join("\n") + "\n"
}

fn machine(sheet: &Sheet) -> String {
    let machine = &sheet.machine;
    format!(
        "{}, {} cores, Linux {}; load average {} before, {} after{}",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.load_before,
        machine.load_after,
        if sheet.quick { "; a quick run" } else { "" }
    )
}

fn head(ran: &[&Entrant]) -> String {
    let titles: Vec<String> = ran.iter().map(|entrant| entrant.label()).collect();
    format!("| scenario | figure | unit | {} | streamgate / nginx |", titles.join(" | "))
}

fn rule(ran: &[&Entrant]) -> String {
    format!("|---|---|---|{}---:|", "---:|".repeat(ran.len()))
}

fn row(figure: &Figure, ran: &[&Entrant]) -> String {
    let value =
        |entrant: &&Entrant| figure.values.get(&entrant.name).copied().map_or_else(String::new, number);
    let values: Vec<String> = ran.iter().map(value).collect();
    let ratio = figure.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    let Figure { scenario, figure, unit, .. } = figure;
    format!("| {scenario} | {figure} | {unit} | {} | {ratio} |", values.join(" | "))
}

fn who(entrant: &Entrant) -> String {
    match &entrant.not_run {
        None => format!("| {} | {} |", entrant.title, entrant.version),
        Some(reason) => format!("| {} | not run: {reason} |", entrant.title),
    }
}

/// Three significant digits or so.
pub(super) fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value.abs() < 10.0 => format!("{value:.2}"),
        value if value.abs() < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}
