//! What the rows about the health of a fleet have in common: settings that notice soon, and what is told of it.

use serde_json::{Value, json};

use super::gateway::Gateway;
use super::row::Row;
use super::settings::Settings;
use super::told::Told;
use super::wait::{SOON, wait_until_async};

/// Ejects after three failures, for longer than a test lasts; makes no checks.
pub(crate) fn ejects() -> Value {
    json!({
        "active": null,
        "passive": { "consecutive": 3, "ejection": "2m", "max_ejected": "50%" },
        "wedged": { "after": "1h" },
        "slow_start": "0s",
    })
}

/// Checks ten times a second, and ejects for half a second to two.
pub(crate) fn checks() -> Value {
    json!({
        "active": { "path": "/health", "every": "100ms", "timeout": "2s", "fall": 2, "rise": 2 },
        "passive": { "consecutive": 3, "ejection": "500ms", "ejection_max": "2s", "max_ejected": "50%" },
        "wedged": { "after": "1h" },
        "slow_start": "0s",
    })
}

/// A cluster with this health.
pub(crate) fn with(health: Value) -> impl Fn(Settings) -> Settings {
    move |settings| settings.set("clusters.c.health", health.clone())
}

impl Gateway {
    /// Waits until each backend that is checked has had its first check.
    pub(crate) async fn checked(&self) {
        wait_until_async("readiness", SOON, || async { self.admin_get("/readyz").await.status() == 200 })
            .await;
    }

    /// Waits until this backend is in the rotation, or out of it.
    pub(crate) async fn wait_up(&self, backend: &str, up: bool) {
        self.wait_metric("backend_up", &[("backend", backend)], f64::from(u8::from(up))).await;
    }

    /// Waits until this backend has passed so many checks more.
    pub(crate) async fn wait_checks(&self, backend: &str, count: usize) {
        let passed = [("backend", backend), ("kind", "check"), ("result", "ok")];
        let before = self.metric("health_checks_total", &passed).await;
        let enough = |now| now >= before + count as f64;
        self.wait_metric_where("checks pass", "health_checks_total", &passed, enough).await;
    }

    /// Whether this backend is in the rotation.
    pub(crate) async fn is_up(&self, backend: &str) -> bool {
        self.metric("backend_up", &[("backend", backend)]).await == 1.0
    }

    /// How often this backend was ejected for this reason.
    pub(crate) async fn ejected(&self, backend: &str, reason: &str) -> f64 {
        self.metric("ejections_total", &[("backend", backend), ("reason", reason)]).await
    }

    /// No backend was ejected, and the log says nothing of one.
    pub(crate) async fn nobody_ejected(&self) {
        assert_eq!(self.metric("ejections_total", &[]).await, 0.0);
        assert!(!self.log().contains("ejected"), "{}", self.log());
    }
}

impl Row {
    /// Streams so many times, one after the other: all of them whole.
    pub(crate) async fn whole_one_by_one(&self, count: usize) {
        for n in 0..count {
            assert_eq!(self.streams(1).await, [Told::whole()], "stream {n}");
        }
    }

    /// How many of the access lines were served by this backend.
    pub(crate) fn served_by(&self, backend: &str) -> usize {
        self.gateway.access_lines().iter().filter(|line| line["backend"] == backend).count()
    }
}
