//! The limit of file descriptors.

/// Descriptors beside those of clients and their engines: listeners, operators, logs, timers, idle connections.
const DESCRIPTORS_ASIDE: u64 = 128;

/// Descriptors below which the start says so where the number of connections has no bound.
const DESCRIPTORS_WANTED: u64 = 16_384;

/// Raises the limit, and gives the number of client connections that may be open under it: each stream takes
/// two descriptors, and the soft limit of 1,024 that many systems start with would end at 500 streams. A
/// connection beyond is told so, where one without a descriptor could not even be accepted.
pub(super) fn connections_max(wanted: Option<usize>) -> Option<usize> {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => within(limit, wanted),
        Err(error) => {
            log::warn!("the limit of file descriptors could not be raised: {error}");
            wanted
        }
    }
}

fn within(limit: u64, connections: Option<usize>) -> Option<usize> {
    let wanted = connections.map_or(DESCRIPTORS_WANTED, |max| 2 * max as u64 + DESCRIPTORS_ASIDE);
    if limit >= wanted {
        return connections;
    }
    let room = usize::try_from((limit - DESCRIPTORS_ASIDE.min(limit / 2)) / 2).unwrap_or(usize::MAX).max(1);
    log::warn!(
        "only {limit} file descriptors are allowed, and server.connections.max may need {wanted}, two a stream: \
         {room} connections are served; raise the limit (LimitNOFILE, ulimit -n) or lower the maximum"
    );
    Some(connections.map_or(room, |max| max.min(room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_all_else() {
        assert_eq!(within(1 << 20, Some(20_000)), Some(20_000));
        assert_eq!(within(1 << 20, None), None);
        assert_eq!(within(1024, Some(20_000)), Some(448));
        assert_eq!(within(1024, None), Some(448));
        assert_eq!(within(256, Some(10)), Some(10));
        assert_eq!(within(64, Some(20_000)), Some(16));
        assert_eq!(within(0, Some(20_000)), Some(1));
    }
}
