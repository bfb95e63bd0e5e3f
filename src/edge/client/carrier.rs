//! What a stream has of the connection that carries it: its patience with the socket, and whose it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Client, Limits};
use crate::admission::{Account, Denial};

/// Keys that one connection counts for at a time. A client has one; a proxy in front of many clients should not
/// be bound by the connections of each.
const KEYS_MAX: usize = 16;

impl Client {
    /// Sets the limits of the writes of one exchange: how long the client may acknowledge nothing, when
    /// the exchange must be over, and how many bytes the socket may hold.
    pub fn limit(&self, stall: Duration, total_at: Instant, window: usize) {
        *self.limits.lock() = Limits { stall, total_at: Some(total_at), window: Some(window) };
        if let Some((connection, counts)) = &self.carrier {
            connection.carry(stall, !counts.swap(true, Ordering::Relaxed));
        }
    }

    fn carry(&self, stall: Duration, is_new: bool) {
        let mut carried = self.carried.lock();
        carried.0 += usize::from(is_new);
        carried.1 = carried.1.max(stall);
        self.limits.lock().stall = carried.1;
    }

    /// The last stream leaves its patience behind until another comes: if it was cut because the socket takes
    /// nothing, the socket must not have longer for it.
    fn release(&self) {
        let mut carried = self.carried.lock();
        carried.0 -= 1;
        if carried.0 == 0 {
            carried.1 = Duration::ZERO;
        }
    }

    /// A key is used on its connection, which counts as one of the key's from now on, as long as it lasts or
    /// until 16 others have been used on it.
    ///
    /// # Errors
    /// It is one more than the key may have.
    pub fn used_by(&self, account: &Arc<Account>, now: Instant) -> Result<(), Denial> {
        if let Some(connection) = self.connection() {
            return connection.used_by(account, now);
        }
        let mut keys = self.keys.lock();
        if !keys.iter().any(|key| key.is_of(account)) {
            let connected = account.connect(now)?;
            if keys.len() == KEYS_MAX {
                keys.remove(0);
            }
            keys.push(connected);
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some((connection, counts)) = &self.carrier
            && counts.load(Ordering::Relaxed)
        {
            connection.release();
        }
    }
}
