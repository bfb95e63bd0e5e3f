//! Installs the packages, once for all tests of this binary.
//!
//! Versions are pinned in `python/requirements.txt` and `node/package.json`; after a change of the latter
//! `npm install --package-lock-only --omit-lockfile-registry-resolved` there writes the lock file anew,
//! without the addresses of a registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::sync::OnceCell;

/// An interpreter, and where its scripts are.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    pub(crate) program: PathBuf,
    pub(crate) scripts: PathBuf,
}

type Outcome = Result<Installed, String>;

/// A virtual environment with the packages for Python, or why there is none.
pub(crate) async fn python() -> Outcome {
    static DONE: OnceCell<Outcome> = OnceCell::const_new();
    once(&DONE, || {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients-python");
        let scripts = super::folder("clients/python");
        let program = dir.join("bin/python");
        run(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
        run(Command::new(&program)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(scripts.join("requirements.txt")))?;
        Ok(Installed { program, scripts })
    })
    .await
}

/// A folder with the packages for Node and copies of the scripts: a script finds packages beside itself.
pub(crate) async fn node() -> Outcome {
    static DONE: OnceCell<Outcome> = OnceCell::const_new();
    once(&DONE, || {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients-node");
        let copy = || -> std::io::Result<()> {
            fs::create_dir_all(&dir)?;
            for file in fs::read_dir(super::folder("clients/node"))? {
                let file = file?;
                fs::copy(file.path(), dir.join(file.file_name()))?;
            }
            Ok(())
        };
        copy().map_err(|error| error.to_string())?;
        run(Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&dir))?;
        Ok(Installed { program: "node".into(), scripts: dir })
    })
    .await
}

async fn once(done: &OnceCell<Outcome>, install: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    done.get_or_init(|| async { tokio::task::spawn_blocking(install).await.unwrap() }).await.clone()
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
