//! The limit of file descriptors.

/// Descriptors beside those of clients and their engines: listeners, operators, logs, timers, idle connections.
const DESCRIPTORS_ASIDE: u64 = 128;

/// Descriptors below which the start says so where the number of connections has no bound.
const DESCRIPTORS_WANTED: u64 = 16_384;

/// Of so many descriptors one is for a connection that is told that there is no place for it.
const REFUSALS_SHARE: u64 = 16;

/// Most of those: in a flood the rest are closed without a word.
const REFUSALS_MAX: u64 = 256;

/// Client connections that there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// That are served; `None` = any number.
    pub(super) served: Option<usize>,
    /// That are told at a time that they are not.
    pub(super) refused: usize,
}

/// Raises the limit, and gives what may be open under it: each stream takes two descriptors, and the soft limit of
/// 1,024 that many systems start with would end at 500 streams. A connection beyond is told so, where one without a
/// descriptor could not even be accepted.
pub(super) fn room(wanted: Option<usize>) -> Room {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => within(limit, wanted),
        Err(error) => {
            log::warn!("the limit of file descriptors could not be raised: {error}");
            Room { served: wanted, refused: count(REFUSALS_MAX) }
        }
    }
}

fn within(limit: u64, connections: Option<usize>) -> Room {
    let refused = (limit / REFUSALS_SHARE).clamp(1, REFUSALS_MAX);
    let wanted = connections.map_or(DESCRIPTORS_WANTED, |max| 2 * max as u64 + DESCRIPTORS_ASIDE + refused);
    if limit >= wanted {
        return Room { served: connections, refused: count(refused) };
    }
    let others = DESCRIPTORS_ASIDE.min(limit / 2) + refused;
    let room = count(limit.saturating_sub(others) / 2).max(1);
    log::warn!(
        "only {limit} file descriptors are allowed, and server.connections.max may need {wanted}, two a stream: \
         {room} connections are served; raise the limit (LimitNOFILE, ulimit -n) or lower the maximum"
    );
    Room { served: Some(connections.map_or(room, |max| max.min(room))), refused: count(refused) }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_all_else() {
        for (limit, connections, served, refused) in [
            (1 << 20, Some(20_000), Some(20_000), 256),
            (1 << 20, None, None, 256),
            (1024, Some(20_000), Some(416), 64),
            (1024, None, Some(416), 64),
            (256, Some(10), Some(10), 16),
            (64, Some(20_000), Some(14), 4),
            (0, Some(20_000), Some(1), 1),
        ] {
            assert_eq!(within(limit, connections), Room { served, refused }, "{limit}");
        }
    }
}
