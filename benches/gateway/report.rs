//! The Markdown table on stdout, the JSON file, and the pictures.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use crate::contender::Contender;
use crate::error::Error;
use crate::options::Options;
use crate::scenario::Outcome;
use crate::sheet::{self, Entrant, Machine, Sheet};
use crate::target::Target;

/// A load average beyond which others use a good part of the two cores.
const BUSY: f64 = 0.5;

/// What a run measured, and on what machine.
#[derive(Debug)]
pub(crate) struct Report(Sheet);

impl Report {
    pub(crate) fn begin(options: &Options) -> Self {
        let load_before = load_average();
        if load_before.parse::<f64>().is_ok_and(|load| load > BUSY) {
            eprintln!("bench: the machine is busy (load average {load_before}): the figures will be rough");
        }
        let machine = Machine {
            cpu: cpu_model(),
            cores: cores(),
            kernel: kernel(),
            load_before,
            load_after: String::new(),
        };
        let entrants: Vec<Entrant> = [vec![Target::Direct], options.proxies()]
            .concat()
            .into_iter()
            .map(|target| entrant(options, target))
            .collect();
        for entrant in &entrants {
            if let Some(reason) = &entrant.not_run {
                eprintln!("bench: {} is not run: {reason}", entrant.title);
            }
        }
        Self(Sheet {
            quick: options.quick,
            // Without the path of the program, which is nobody's business.
            command: std::env::args().skip(1).filter(|arg| arg != "--bench").collect(),
            machine,
            entrants,
            figures: Vec::new(),
            remarks: Vec::new(),
        })
    }

    /// That of an earlier run.
    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let text = fs::read(file).map_err(|error| Error::io(format!("read {}", file.display()), error))?;
        let no_sheet = |source| Error::NoSheet { file: file.to_owned(), source };
        serde_json::from_slice(&text).map(Self).map_err(no_sheet)
    }

    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.0.figures.extend(outcome.figures);
        self.0.remarks.extend(outcome.remarks);
    }

    /// Prints the table and writes the file.
    pub(crate) fn finish(&mut self, file: &Path) -> Result<(), Error> {
        self.0.machine.load_after = load_average();
        self.print()?;
        let json = serde_json::to_string_pretty(&self.0).map_err(io::Error::from);
        let text = json.map_err(|error| Error::io("make JSON of the figures", error))?;
        write(file, &(text + "\n"))
    }

    pub(crate) fn print(&self) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        let written = out.write_all(sheet::markdown(&self.0).as_bytes());
        written.map_err(|error| Error::io("print the table", error))
    }

    /// Draws what there is to draw.
    pub(crate) fn draw(&self, dir: &Path) -> Result<(), Error> {
        sheet::pictures(&self.0).into_iter().try_for_each(|(file, svg)| write(&dir.join(file), &svg))
    }
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    let failed = |error| Error::io(format!("write {}", file.display()), error);
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    fs::write(file, text).map_err(failed)
}

fn entrant(options: &Options, target: Target) -> Entrant {
    let contender = Contender::of(target);
    let version = match (target, contender) {
        (_, Some(contender)) => contender.version(),
        (Target::Bare, None) => {
            pingora().map(str::to_owned).ok_or_else(|| "it is not in Cargo.lock".to_owned())
        }
        (_, None) => own_version(&options.binary),
    };
    let (version, not_run) = match version {
        Ok(version) => (version, None),
        Err(reason) => (String::new(), Some(reason)),
    };
    let command = contender.map(Contender::command).unwrap_or_default();
    let one_of = contender.map_or(1, |contender| contender.one_of);
    let [name, title] = [target.name(), target.title()].map(str::to_owned);
    Entrant { name, title, version, one_of, command, not_run }
}

fn own_version(binary: &str) -> Result<String, String> {
    let told = Command::new(binary).arg("--version").output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&told.stdout);
    Ok(told.trim().trim_start_matches("streamgate ").to_owned())
}

/// The version that this program was built with.
fn pingora() -> Option<&'static str> {
    let (_, rest) = include_str!("../../Cargo.lock").split_once("name = \"pingora-proxy\"\nversion = \"")?;
    rest.split('"').next()
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map_or("unknown CPU", |(_, model)| model).to_owned()
}

/// Cores of the machine, whatever this process is bound to.
fn cores() -> usize {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count()
}
