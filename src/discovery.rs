//! Backends that are found by name: each address of the name is one.
//!
//! A name is asked for again and again by a task of its own, with the system's resolver, so that what the
//! machine knows (its hosts file, its search domains) counts here as well. That resolver blocks, and does so on threads that
//! serve nobody. It does not tell how long an answer holds, which `every` says instead. An answer that
//! fails, or is empty, changes nothing: the last good one stays.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};

use crate::config::{Cluster, Discover};
use crate::reload::{Name, Reloader};

/// How long the start, and a reload that brings a name, wait for its first answer.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// Addresses of one name that are used.
const ADDRESSES_MAX: usize = 1024;

/// Asks for names once, all at the same time. What has no answer in time is left out, with a warning.
pub async fn first_look(names: impl Iterator<Item = Name>) -> HashMap<Name, Vec<IpAddr>> {
    let mut looks = JoinSet::new();
    for name in names {
        looks.spawn(async move {
            let answer = tokio::time::timeout(FIRST_LOOK, look_up(&name)).await;
            (name, answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
        });
    }
    let mut found = HashMap::new();
    for ((host, port), answer) in looks.join_all().await {
        match answer {
            Ok(addrs) => {
                found.insert((host, port), addrs);
            }
            Err(error) => log::warn!("{host}:{port} has no address yet ({error}); it is asked for again"),
        }
    }
    found
}

async fn look_up(name: &Name) -> io::Result<Vec<IpAddr>> {
    let (host, port) = name;
    let addrs = tokio::net::lookup_host((host.as_str(), *port)).await?;
    in_order(addrs.map(|addr| addr.ip()).collect())
}

/// The same answer in another order is the same answer.
fn in_order(mut addrs: Vec<IpAddr>) -> io::Result<Vec<IpAddr>> {
    addrs.sort_unstable();
    addrs.dedup();
    addrs.truncate(ADDRESSES_MAX);
    if addrs.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(addrs) }
}

/// The tasks that ask, one a cluster.
pub(crate) struct Lookouts {
    reloader: Reloader,
    running: HashMap<Arc<str>, (Discover, Lookout)>,
}

/// A task that ends with this.
struct Lookout(JoinHandle<()>);

impl Drop for Lookout {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Lookouts {
    /// Nothing is asked for yet.
    pub(crate) fn new(reloader: Reloader) -> Self {
        Self { reloader, running: HashMap::new() }
    }

    /// Asks for what these clusters say from now on. What does not differ goes on undisturbed.
    pub(crate) fn follow(&mut self, clusters: &[Cluster]) {
        let mut before = std::mem::take(&mut self.running);
        for cluster in clusters {
            let Some(discover) = &cluster.discover else { continue };
            let name = Arc::clone(&cluster.name);
            let lookout = match before.remove(&name) {
                Some((same, lookout)) if same == *discover => lookout,
                _ => Lookout(tokio::spawn(watch(Arc::clone(&name), discover.clone(), self.reloader.clone()))),
            };
            self.running.insert(name, (discover.clone(), lookout));
        }
    }
}

/// Asks for a name for ever, and tells when the answer differs.
async fn watch(cluster: Arc<str>, discover: Discover, reloader: Reloader) {
    let name = (discover.host, discover.port);
    let mut last: Option<Vec<IpAddr>> = None;
    let mut is_failing = false;
    loop {
        tokio::time::sleep(discover.every).await;
        match look_up(&name).await {
            Ok(addrs) => {
                is_failing = false;
                if last.as_ref() == Some(&addrs) {
                    continue;
                }
                log::info!("cluster {cluster}: {}:{} is {}", name.0, name.1, told(&addrs));
                last = Some(addrs.clone());
                if !reloader.found(name.clone(), addrs).await {
                    return;
                }
            }
            Err(error) if !is_failing => {
                is_failing = true;
                log::warn!(
                    "cluster {cluster}: {}:{} cannot be looked up ({error}); what it was stays",
                    name.0,
                    name.1
                );
            }
            Err(error) => log::debug!("cluster {cluster}: {}: {error}", name.0),
        }
    }
}

fn told(addrs: &[IpAddr]) -> String {
    let shown: Vec<String> = addrs.iter().take(8).map(ToString::to_string).collect();
    let more = if addrs.len() > shown.len() {
        format!(" and {} more", addrs.len() - shown.len())
    } else {
        String::new()
    };
    shown.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_in_order_and_never_empty() {
        let addr = |text: &str| text.parse::<IpAddr>().unwrap();
        let answer = in_order(vec![addr("10.0.0.2"), addr("10.0.0.1"), addr("10.0.0.2")]).unwrap();
        assert_eq!(answer, [addr("10.0.0.1"), addr("10.0.0.2")]);
        assert!(in_order(Vec::new()).is_err());
        assert_eq!(told(&[addr("::1"); 10]), format!("{} and 2 more", ["::1"; 8].join(", ")));
    }

    #[tokio::test]
    async fn a_name_that_has_no_address_is_left_out() {
        let names = [("localhost".to_owned(), 80), ("nowhere.invalid".to_owned(), 80)];
        let found = first_look(names.into_iter()).await;
        assert!(found[&("localhost".to_owned(), 80)].contains(&"127.0.0.1".parse().unwrap()), "{found:?}");
        assert!(!found.contains_key(&("nowhere.invalid".to_owned(), 80)));
    }
}
