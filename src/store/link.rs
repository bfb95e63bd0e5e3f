//! A connection to a Redis: how it is made, and what is asked over it.
//!
//! The socket and TLS on it are ours: the binary has one TLS library, and one way of checking whom it speaks to.

use std::pin::Pin;
use std::time::Duration;

use openssl::ssl::Ssl;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue as _, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_openssl::SslStream;

use super::Charge;
use crate::admission::Wanted;
use crate::config::Redis;
use crate::config::units::Rate;
use crate::tls;

/// How long connecting may take, and an answer to questions that no request waits for.
pub(super) const CONNECT: Duration = Duration::from_secs(1);
/// What Redis does for a decision. It has one key, so that all that a decision needs lies in one place.
const SCRIPT: &str = include_str!("bucket.lua");
/// Digits of the name that Redis gives a script: its SHA-1.
const NAME_DIGITS: usize = 40;

/// A connection, and the name under which the script is known at its other end.
pub(super) struct Link {
    pub(super) connection: MultiplexedConnection,
    script: String,
}

impl Link {
    /// Connects. Why it cannot holds no credential.
    pub(super) async fn to(redis: &Redis) -> Result<Self, String> {
        // With the lookup of its name, TLS, and the greeting.
        let connecting = timeout(3 * CONNECT, async {
            let mut connection = dial(redis).await?;
            is_single(&mut connection).await?;
            // Not by the crate's own call, which panics where what answers is no Redis.
            let load = redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut connection).await;
            let script: String = load.map_err(told)?;
            if script.len() != NAME_DIGITS {
                return Err("it does not know scripts".to_owned());
            }
            Ok(Self { connection, script })
        });
        connecting.await.unwrap_or_else(|_| Err("it does not answer".into()))
    }

    /// Runs the script by its name; where Redis has forgotten it, by its text.
    pub(super) async fn take(
        &self,
        bucket: &str,
        wanted: Wanted,
    ) -> Result<(bool, i64, u64, u64), RedisError> {
        let call = |command: &str, script: &str| {
            let mut call = redis::cmd(command);
            call.arg(script).arg(1).arg(bucket).arg(wanted.rate.count).arg(micros(wanted.rate));
            call.arg(wanted.amount).arg(wanted.left).arg("take");
            call
        };
        let known = call("EVALSHA", &self.script).query_async(&mut self.connection.clone()).await;
        match known {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                call("EVAL", SCRIPT).query_async(&mut self.connection.clone()).await
            }
            known => known,
        }
    }

    /// Runs it for each charge, all in one round trip.
    pub(super) async fn charge(&self, charges: impl Iterator<Item = Charge>) -> Result<(), RedisError> {
        let mut calls = redis::pipe();
        for Charge { bucket, rate, amount } in charges {
            let call = calls.cmd("EVALSHA").arg(&self.script).arg(1).arg(bucket);
            call.arg(rate.count).arg(micros(rate)).arg(amount).arg(0).arg("charge").ignore();
        }
        calls.query_async(&mut self.connection.clone()).await
    }
}

async fn dial(redis: &Redis) -> Result<MultiplexedConnection, String> {
    let settings = redis.clone();
    // Files are read, and the system's authorities are many.
    let ready = spawn_blocking(move || Ok((greeting(&settings)?, tls(&settings)?)));
    let (greeting, ssl) = ready.await.map_err(told).flatten()?;
    let socket = TcpStream::connect((&*redis.host, redis.port)).await.map_err(told)?;
    socket.set_nodelay(true).map_err(told)?;
    let (Some(ssl), Some(name)) = (ssl, &redis.tls) else { return greet(&greeting, socket).await };
    let mut stream = SslStream::new(ssl, socket).map_err(told)?;
    match Pin::new(&mut stream).connect().await {
        Ok(()) => greet(&greeting, stream).await,
        Err(error) => Err(told(tls::told(stream.ssl().verify_result(), &error, name, "a port without TLS"))),
    }
}

/// Who we are there.
fn greeting(redis: &Redis) -> Result<RedisConnectionInfo, String> {
    let mut greeting = RedisConnectionInfo::default()
        .set_db(redis.database)
        .set_lib_name(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    if let Some(user) = &redis.user {
        greeting = greeting.set_username(user);
    }
    if let Some(password) = redis.password.read()? {
        greeting = greeting.set_password(password.header_value().to_str().map_err(told)?);
    }
    Ok(greeting)
}

/// Whom it must be, where it is reached over TLS.
fn tls(redis: &Redis) -> Result<Option<Ssl>, String> {
    let Some(name) = &redis.tls else { return Ok(None) };
    let trust = redis.trust()?;
    let ssl = tls::context(&trust, b"").and_then(|context| tls::toward(&context, &trust, name));
    ssl.map(Some).map_err(told)
}

async fn greet(
    greeting: &RedisConnectionInfo,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<MultiplexedConnection, String> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(CONNECT));
    let (connection, driver) =
        MultiplexedConnection::new_with_config(greeting, stream, config).await.map_err(told)?;
    // It ends with the last handle of the connection.
    tokio::spawn(driver);
    Ok(connection)
}

/// Refuses what keeps only a part of all keys, or none. Who may not ask what it is has to know.
async fn is_single(connection: &mut MultiplexedConnection) -> Result<(), String> {
    let mode = match redis::cmd("HELLO").query_async(connection).await {
        Ok(Value::Array(told)) => mode(told),
        Ok(_) => None,
        Err(error) if error.is_io_error() => return Err(told(error)),
        Err(_) => None,
    };
    match mode.as_deref() {
        Some("cluster") => {
            Err("it belongs to a Redis Cluster, which is not spoken: name a single server".into())
        }
        Some("sentinel") => Err("it is a Sentinel, which is not spoken: name the server itself".into()),
        _ => Ok(()),
    }
}

/// What follows the word "mode".
fn mode(told: Vec<Value>) -> Option<String> {
    let mut words = told.into_iter().map(|value| String::from_redis_value(value).ok());
    words.find(|word| word.as_deref() == Some("mode"))?;
    words.next()?
}

fn told(error: impl ToString) -> String {
    error.to_string()
}

fn micros(rate: Rate) -> u64 {
    u64::try_from(rate.per.as_micros()).unwrap_or(u64::MAX)
}
