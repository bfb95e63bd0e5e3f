//! `streamgate top`: the live view in a terminal, or printed once.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::support::gateway::output;
use crate::support::wait::{SOON, wait_until};
use crate::support::{Engine, Gateway, Settings, as_is, one_engine};
use serde_json::json;

fn once(admin: &str, more: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    output(&[&["top", "--once", "--admin", admin], more].concat(), variables)
}

#[tokio::test]
async fn one_look_is_printed_where_nobody_looks_on() {
    let (one, two) = (Engine::start().await, Engine::start().await);
    let gateway = Gateway::start(Settings::new(&[one.addr, two.addr])).await;
    gateway.admin_post("/drain/c/u2").await;
    let admin = format!("http://{}", gateway.admin);
    let (code, said) = once(&admin, &[], &[]);
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("streamgate  serving"), "{said}");
    assert!(lines[1].starts_with("All well  1 of 2 backends serving"), "{said}");
    assert!(lines[2].contains("c/u2  drained by an operator"), "{said}");
    assert!(said.contains("c  1 of 2 serving"), "{said}");
    assert!(!said.contains('\x1b'), "no colours: {said:?}");
    // The same without being asked for, as standard output is no terminal.
    let (code, same) = output(&["top", "--admin", &admin], &[]);
    assert_eq!((code, same.lines().count()), (Some(0), lines.len()), "{same}");
}

/// What an engine said last is not shown as if it said so still when it is down.
#[tokio::test]
async fn figures_of_an_engine_that_is_down_have_their_age() {
    let engine = Engine::start().await;
    let scrape = json!({ "path": "/metrics", "every": "100ms" });
    let gateway = Gateway::start(Settings::new(&[engine.addr]).set("clusters.c.scrape", scrape)).await;
    let admin = format!("http://{}", gateway.admin);
    let row = || {
        let (_, said) = once(&admin, &[], &[]);
        said.lines().find(|line| line.contains("u1 ")).unwrap_or_default().trim_end().to_owned()
    };
    wait_until("its figures are there", SOON, || row().contains("0 run · 0 wait") && !row().contains(" ago"))
        .await;
    engine.kill();
    wait_until("they are old", SOON, || row().ends_with(" s ago")).await;
    assert!(row().contains("0 run · 0 wait"), "{}", row());
}

#[tokio::test]
async fn the_token_comes_from_the_environment_and_is_never_shown() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("token");
    fs::write(&file, "canary").expect("write");
    let (gateway, _engine) =
        one_engine(|settings| settings.set("server.admin.token_file", file.to_str().expect("UTF-8"))).await;
    let admin = format!("http://{}", gateway.admin);
    let (code, said) = once(&admin, &[], &[]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("401") && said.contains("--token-env"), "{said}");
    let (code, said) = once(&admin, &["--token-env", "TOKEN"], &[]);
    assert_eq!((code, said.contains("--token-env TOKEN")), (Some(64), true), "{said}");
    let (code, said) = once(&admin, &["--token-env", "TOKEN"], &[("TOKEN", "canary-not")]);
    assert_eq!((code, said.contains("canary")), (Some(64), false), "{said}");
    let (code, said) = once(&admin, &["--token-env", "TOKEN"], &[("TOKEN", "canary")]);
    assert_eq!((code, said.contains("canary")), (Some(0), false), "{said}");
}

#[tokio::test]
async fn a_gateway_that_is_not_there_is_told() {
    let (code, said) = once("http://127.0.0.1:1", &[], &[]);
    assert_eq!((code, said.contains("Connection refused")), (Some(75), true), "{said}");
    let (code, said) = once("127.0.0.1:9090", &[], &[]);
    assert_eq!((code, said.contains("http://ADDRESS:PORT")), (Some(64), true), "{said}");
}

#[tokio::test]
async fn a_unix_socket_will_do() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let listen = format!("unix:{}", folder.path().join("admin.sock").display());
    let engine = Engine::start().await;
    let settings = Settings::new(&[engine.addr]).set("server.admin", json!({ "listen": listen }));
    let _gateway = Gateway::start(settings).await;
    let (code, said) = once(&listen, &[], &[]);
    assert_eq!((code, said.contains("All well")), (Some(0), true), "{said}");
}

/// script(1), which is ended with the test, and what runs on its terminal with it.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// On a terminal it follows, and gives the terminal back: by `q`, and by a signal.
#[tokio::test]
async fn a_terminal_is_given_back_as_it_was() {
    let (gateway, _engine) = one_engine(as_is).await;
    for by_key in [true, false] {
        let folder = tempfile::tempdir().expect("temporary directory");
        let (typed, pid) = (folder.path().join("typed"), folder.path().join("pid"));
        let top = format!(
            "stty rows 40 cols 120; sh -c 'echo $$ > {}; exec {} top --admin http://{}'; code=$?; stty -a; exit $code",
            pid.display(),
            env!("CARGO_BIN_EXE_streamgate"),
            gateway.admin
        );
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-f", "-c", &top]).arg(&typed).env("TERM", "xterm-256color");
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut terminal = Terminal(script.spawn().expect("run script(1)"));
        let shown = || fs::read_to_string(&typed).unwrap_or_default();
        wait_until("the view is on the screen", SOON, || shown().contains("serving")).await;
        assert!(shown().contains("\x1b[?1049h"), "a screen of its own: {:?}", shown());
        if by_key {
            std::io::Write::write_all(terminal.0.stdin.as_mut().expect("a pipe"), b"q").expect("type");
        } else {
            let pid = fs::read_to_string(&pid).expect("its number");
            assert!(Command::new("kill").arg(pid.trim()).status().expect("run kill").success());
        }
        let mut code = None;
        wait_until("it ends", SOON, || {
            code = terminal.0.try_wait().expect("wait");
            code.is_some()
        })
        .await;
        assert_eq!(code.and_then(|code| code.code()), Some(0));
        let shown = shown();
        let (_, after) = shown.rsplit_once("\x1b[?1049l").expect("the screen of its own is left");
        for line_by_line in [" icanon", " echo "] {
            assert!(after.contains(line_by_line), "{after}");
        }
    }
}
