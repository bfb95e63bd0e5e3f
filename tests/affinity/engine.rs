//! An engine: a prefix cache of bounded size, and time that grows with what is not in it and with what runs.

use std::collections::HashMap;

use super::conversation::BLOCK;

/// Tokens of a block.
const BLOCK_TOKENS: f64 = BLOCK as f64 / 4.0;
/// Blocks that the cache holds: 128k tokens.
const BLOCKS_MAX: usize = 2_048;
/// Tokens that are prefilled in a second, and generated for one request on an idle engine.
const PREFILL: f64 = 8_000.0;
const DECODE: f64 = 60.0;
/// So many requests at once halve the speed of each.
const HALF_SPEED: f64 = 12.0;

#[derive(Default)]
pub(crate) struct Engine {
    cache: HashMap<u64, u64>,
    uses: u64,
}

/// One request as the engine served it.
pub(crate) struct Served {
    /// Blocks of its prompt, and those of them that were cached.
    pub(crate) blocks: usize,
    pub(crate) cached: usize,
    /// Milliseconds to its first event, and to its end.
    pub(crate) first_event: u64,
    pub(crate) whole: u64,
}

impl Engine {
    /// Serves a prompt of these blocks with an answer of so many tokens, beside so many others.
    pub(crate) fn serve(&mut self, keys: &[u64], tokens: u64, beside: usize) -> Served {
        let cached = keys.iter().take_while(|key| self.cache.contains_key(key)).count();
        for key in keys {
            self.uses += 1;
            self.cache.insert(*key, self.uses);
        }
        self.forget();
        let slow = 1.0 + beside as f64 / HALF_SPEED;
        let prefill = (keys.len() - cached + 1) as f64 * BLOCK_TOKENS / PREFILL * slow * 1e3;
        let decode = tokens as f64 / DECODE * slow * 1e3;
        let (first_event, whole) = (prefill as u64 + 1, (prefill + decode) as u64 + 2);
        Served { blocks: keys.len(), cached, first_event, whole }
    }

    /// Least recently used out, some more at once than needed.
    fn forget(&mut self) {
        if self.cache.len() > BLOCKS_MAX {
            let mut uses: Vec<u64> = self.cache.values().copied().collect();
            uses.sort_unstable();
            let oldest = uses[uses.len() - BLOCKS_MAX + BLOCKS_MAX / 8];
            self.cache.retain(|_, used| *used >= oldest);
        }
    }
}
