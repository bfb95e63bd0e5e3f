//! Questions that are asked over and over: active checks, and scrapes.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{Prober, Target, question};
use crate::cluster::Reading;
use crate::config::{Active, Scrape};
use crate::upstream::Unheard;

/// Most of a metrics page that is read: a vLLM with many models and buckets has some hundred KiB.
const PAGE_MAX: usize = 4 * 1024 * 1024;

/// Least time for a scrape, however often one is to be taken.
const SCRAPE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Asks whether it is well, and lets its health learn from it; nothing where it could not be asked for want of ours.
pub(super) async fn check(prober: &Prober, target: &Target, active: &Active) {
    let answer = match question::head(target, &active.path, None) {
        Ok(head) => timeout(active.timeout, prober.asker.ask(&target.backend, &head, b"", 0)).await,
        Err(error) => return log::error!("health check of {}: {error}", target.backend.name),
    };
    let why = match answer {
        Ok(Ok(heard)) if (200..300).contains(&heard.status) => None,
        Ok(Ok(heard)) => Some(format!("{} answers with status {}", active.path, heard.status)),
        Ok(Err(unheard)) => match unheard.own_want() {
            Some(want) => return prober.shared.unchecked(&target.backend, want, &unheard, Instant::now()),
            None => Some(unheard.to_string()),
        },
        Err(_) => Some(format!("{} does not answer in {:?}", active.path, active.timeout)),
    };
    let now = Instant::now();
    prober.shared.metrics.asked(&target.backend, "check", why.is_none());
    if let Some(change) = target.backend.state.health.check(why.is_none(), now, active) {
        prober.shared.health_changed(&target.backend, &change, why.as_deref(), now);
    }
}

/// Reads its load. Where that cannot be read nothing follows.
pub(super) async fn scrape(prober: &Prober, target: &Target, scrape: &Scrape) {
    let patience = scrape.every.max(SCRAPE_TIMEOUT_MIN);
    let reading = timeout(patience, page(prober, target, scrape)).await;
    let reading = reading.unwrap_or_else(|_| Err(format!("no page in {patience:?}")));
    prober.shared.metrics.asked(&target.backend, "scrape", reading.is_ok());
    match reading {
        Ok(reading) => target.backend.state.read(reading),
        Err(why) => log::debug!("the load of {} cannot be read: {why}", target.backend.name),
    }
}

async fn page(prober: &Prober, target: &Target, scrape: &Scrape) -> Result<Reading, String> {
    let head = question::head(target, &scrape.path, None).map_err(|error| error.to_string())?;
    let asked = prober.asker.ask(&target.backend, &head, b"", PAGE_MAX).await;
    let heard = asked.map_err(|unheard: Unheard| unheard.to_string())?;
    if heard.status != 200 {
        return Err(format!("status {}", heard.status));
    }
    Reading::of_page(&heard.body, Instant::now())
        .ok_or_else(|| "the page has none of the known names".to_owned())
}
