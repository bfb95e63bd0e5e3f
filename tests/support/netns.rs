//! A network of a test's own: the test starts itself once more in a network namespace, where it may lose packets.
//!
//! That needs user namespaces (`unshare -rn`) and `nft`, and no rights beyond them. Where they are not to be had the test
//! says that it was not run. Nothing of it can reach another test or the machine.

use std::future::Future;
use std::process::{Command, Stdio};

use super::{not_run, score};

/// Says to a process that it is the second one.
const INSIDE: &str = "STREAMGATE_TEST_NETNS";

/// Runs this test, which has this name, in a network that has nothing but a loopback.
pub(crate) fn alone<F: Future<Output = ()>>(test: &str, body: impl FnOnce() -> F) {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.expect("a runtime").block_on(body());
    }
    let probe = "ip link set lo up && nft add table ip faults";
    match inside(probe).stdout(Stdio::null()).output() {
        Err(error) => return not_run(test, &format!("unshare: {error}")),
        Ok(probed) if !probed.status.success() => {
            return not_run(test, String::from_utf8_lossy(&probed.stderr).trim());
        }
        Ok(_) => {}
    }
    let chain = "nft add chain ip faults in '{ type filter hook input priority 0; }'";
    let run = format!("{probe} && {chain} && exec \"$0\" --exact {test} --nocapture");
    let this = std::env::current_exe().expect("this test");
    let ran = inside(&run).arg(this).env(INSIDE, "1").output().expect("unshare");
    let told = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
    // A name that no test has would pass as well.
    assert!(ran.status.success() && told.contains("1 passed"), "in its own network: {told}");
}

fn inside(script: &str) -> Command {
    let mut unshare = Command::new("unshare");
    // Debian keeps the tools where only root looks for them.
    let script = format!("PATH=$PATH:/usr/sbin:/sbin; {script}");
    unshare.args(["-rn", "sh", "-c", &script]).stdin(Stdio::null());
    unshare
}

/// Adds a rule to what comes in, such as `tcp dport 80 drop`, in the words of nft.
pub(crate) fn rule(words: &str) {
    nft(&format!("add rule ip faults in {words}"));
    score::struck(1, words);
}

/// The network is well again.
pub(crate) fn heal() {
    nft("flush chain ip faults in");
}

/// Packets that the rules have counted.
pub(crate) fn counted() -> u64 {
    let rules = nft("list chain ip faults in");
    let counts = rules.split("counter packets ").skip(1);
    counts.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// What the kernel has counted in this network, as `InCsumErrors` of `Tcp`.
pub(crate) fn kernel(group: &str, name: &str) -> u64 {
    let read = |file| std::fs::read_to_string(format!("/proc/net/{file}")).expect("the kernel's counters");
    let text = ["snmp", "netstat"].map(read).concat();
    // A line of names, then one of values.
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut counters = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = counters.find(|(found, _)| *found == name).expect("a counter");
    value.parse().expect("a number")
}

fn nft(words: &str) -> String {
    let output = Command::new("nft").args(words.split(' ')).output().expect("nft");
    assert!(output.status.success(), "nft {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
