//! From a configuration to a gateway that lacks nothing but its sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use super::descriptors::Room;
use super::unusable::one_file_each;
use super::{StartError, certificates, setup, start_engines, store};
use crate::access_log::AccessLog;
use crate::admission::PerIp;
use crate::config::{Config, Environment};
use crate::discovery;
use crate::drain::Drain;
use crate::edge::Connections;
use crate::embed::Gateway;
use crate::handover::{Handed, Predecessor, TakeError, WARM_MAX};
use crate::keys::Strangers;
use crate::ledger::Ledger;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::prober;
use crate::proxy::Shared;
use crate::reload::{self, Builder, Hosts, Reloader};
use crate::request_id;
use crate::told::Told;
use crate::trace::Collector;
use crate::upstream::{Connector, Throwaway};
use crate::usage_log::UsageLog;

/// How often a successor looks whether its backends have been checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A gateway that lacks nothing but its sockets.
pub(super) struct Built {
    pub(super) shared: Arc<Shared>,
    pub(super) builder: Builder,
    pub(super) throwaway: Throwaway,
    pub(super) config: Config,
    pub(super) found: reload::Found,
    pub(super) asks: (Reloader, mpsc::Receiver<reload::Ask>),
    pub(super) engines: Vec<(String, SocketAddr)>,
}

impl Built {
    pub(super) async fn new(gateway: Gateway, room: Room) -> Result<Self, StartError> {
        let Gateway { loaded, file, log, hooks, below, .. } = gateway;
        let asks = Reloader::new(file, &loaded);
        let config = loaded.config;
        let engines = start_engines(&config).await?;
        let access = AccessLog::open(&config.log.access, config.log.format)
            .map_err(|source| StartError::AccessLog { target: config.log.access.clone(), source })?;
        let usage = usage_log(&config)?;
        let traces = config.telemetry.otlp.as_deref().map(Collector::start).transpose();
        let traces = traces.map_err(|error| StartError::Setup(format!("telemetry.otlp: {error}")))?;
        let metrics = Metrics::new(log).map_err(setup)?;
        certificates::tell(&below, &metrics);
        let throwaway = Throwaway::new(config.server.pool_max_idle);
        let connector = Connector::new(throwaway.options.clone());
        let builder = Builder { connector, below, environment: Environment::detect() };
        let found = discovery::first_look(reload::names(&config)).await;
        let hosts = Hosts::default();
        let snapshot = builder.snapshot(&config, &found, None, |host, port| hosts.look_up(host, port))?;
        snapshot.come_into_force(Instant::now());
        let server = &snapshot.server;
        let shared = Arc::new(Shared {
            drain: Drain::new(),
            ledger: Ledger::new(server.request.buffered_bytes),
            memory: Arc::new(Memory::new(server.memory_bytes)),
            connections: Arc::new(Connections::new(room.served, server.connections_per_ip, room.refused)),
            store: store(&config, &metrics),
            per_ip: PerIp::default(),
            strangers: Strangers::default(),
            metrics,
            access,
            usage,
            traces,
            slow: Told::default(),
            crowded: Told::default(),
            hooks,
            ids: request_id::Source::default(),
            snapshot: ArcSwap::from_pointee(snapshot),
        });
        Ok(Self { shared, builder, throwaway, config, found, asks, engines })
    }

    pub(super) fn watch_backends(&self, first: prober::First) {
        tokio::spawn(prober::run(Arc::clone(&self.shared), self.builder.connector.asker(), first));
    }

    /// Gets to know the backends, then asks the process that runs for its sockets.
    pub(super) async fn ask_predecessor(&self) -> Result<(Predecessor, Vec<Handed>), StartError> {
        let path = self.config.server.upgrade_socket.as_deref().ok_or(TakeError::NoSocket)?;
        self.watch_backends(prober::First::Soon);
        let checked = async {
            while !self.shared.snapshot.load().is_checked() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(WARM_MAX, checked).await.is_err() {
            log::warn!("some backends have not answered a check yet; taking over without");
        }
        Ok(Predecessor::ask(path).await?)
    }
}

fn usage_log(config: &Config) -> Result<UsageLog, StartError> {
    let Some(target) = &config.log.usage else { return Ok(UsageLog::none()) };
    // The access log is open, and its file made if it was not there.
    one_file_each(&config.log)?;
    UsageLog::open(target).map_err(|source| StartError::UsageLog { file: target.file.clone(), source })
}
