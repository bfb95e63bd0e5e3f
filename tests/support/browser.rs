//! Chromium, where the machine has it: left alone with a page, or driven like a person would.
//!
//! It is driven by the DevTools protocol over two pipes (`--remote-debugging-pipe`): JSON messages that end in a
//! zero byte, ours into its descriptor 3 and its own out of 4. A shell connects these to named pipes, so no
//! WebSocket and no unsafe code is needed.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

use super::wait::{SOON, within};

/// Starting a browser on a busy machine takes a while.
const START: Duration = Duration::from_secs(40);

/// Not by the name on the path, which is a script that would be ended without its browser.
const NAMES: [&str; 3] =
    ["/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium", "/usr/bin/google-chrome"];

/// Without a display, a sandbox or anybody to ask.
const ALONE: [&str; 6] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--no-first-run",
];

fn installed() -> Option<&'static str> {
    NAMES.into_iter().find(|name| std::path::Path::new(name).exists())
}

fn arguments(dir: &TempDir) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ALONE.iter().map(Into::into).collect();
    arguments.push(format!("--user-data-dir={}", dir.path().join("profile").display()).into());
    arguments
}

/// A browser that is ended with the test.
#[derive(Debug)]
pub(crate) struct Browser(Child, #[allow(dead_code, reason = "it lives as long as the browser")] TempDir);

impl Browser {
    /// Opens a page; `None` where there is no browser.
    pub(crate) fn open(url: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut command = Command::new(installed()?);
        command.args(arguments(&dir)).arg("--remote-debugging-port=0").arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Some(Self(command.spawn().expect("start the browser"), dir))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A page in a browser that does what it is told.
#[derive(Debug)]
pub(crate) struct Page {
    _browser: Browser,
    orders: pipe::Sender,
    answers: BufReader<pipe::Receiver>,
    session: Option<String>,
    asked: u64,
}

impl Page {
    /// Opens a page, which is the test's own in all; `None` where there is no browser.
    pub(crate) async fn open(url: &str) -> Option<Self> {
        let name = installed()?;
        let dir = tempfile::tempdir().expect("temporary directory");
        let (orders, answers) = (dir.path().join("orders"), dir.path().join("answers"));
        for fifo in [&orders, &answers] {
            assert!(Command::new("mkfifo").arg(fifo).status().expect("run mkfifo").success());
        }
        // Both ends at once, so that neither side waits for the other to open its own.
        let mut both = pipe::OpenOptions::new();
        let answered = both.read_write(true).open_receiver(&answers).expect("a pipe");
        let ordered = both.open_sender(&orders).expect("a pipe");
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3<\"$ORDERS\" 4>\"$ANSWERS\"", name]).args(arguments(&dir));
        shell.arg("--remote-debugging-pipe").env("ORDERS", &orders).env("ANSWERS", &answers);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let browser = Browser(shell.spawn().expect("start the browser"), dir);
        let answers = BufReader::new(answered);
        let mut page = Self { _browser: browser, orders: ordered, answers, session: None, asked: 0 };
        let target = page.tell("Target.createTarget", json!({ "url": "about:blank" })).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = page.tell("Target.attachToTarget", attach).await;
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        page.tell("Page.enable", json!({})).await;
        page.tell("Page.navigate", json!({ "url": url })).await;
        Some(page)
    }

    /// Gives an order and its answer.
    pub(crate) async fn tell(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut order = json!({ "id": self.asked, "method": method, "params": params });
        if let Some(session) = &self.session {
            order["sessionId"] = json!(session);
        }
        let line = order.to_string() + "\0";
        within("the browser takes an order", START, self.orders.write_all(line.as_bytes()))
            .await
            .expect("write");
        loop {
            let mut line = Vec::new();
            let read = self.answers.read_until(0, &mut line);
            within(&format!("the browser answers {method}"), START, read).await.expect("read");
            let answer: Value =
                serde_json::from_slice(line.strip_suffix(b"\0").expect("a whole message")).expect("JSON");
            if answer["id"] == self.asked {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// What an expression comes to in the page.
    pub(crate) async fn value(&mut self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.tell("Runtime.evaluate", ask).await;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn until(&mut self, expression: &str) {
        let start = std::time::Instant::now();
        while self.value(expression).await != true {
            if start.elapsed() > 3 * SOON {
                let shown = self.value("document.body.innerText").await;
                panic!("not within {:?}: {expression}; the page shows {shown}", 3 * SOON);
            }
        }
    }

    /// Presses a key, as `KeyboardEvent.key` calls it.
    pub(crate) async fn press(&mut self, key: &str) {
        let (text, code) = match key {
            "Enter" => ("\r", 13),
            "Tab" => ("", 9),
            "Escape" => ("", 27),
            letter => (letter, 0),
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for (kind, text) in [(down, text), ("keyUp", "")] {
            let event = json!({ "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code });
            self.tell("Input.dispatchKeyEvent", event).await;
        }
    }
}
