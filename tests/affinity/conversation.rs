//! Conversations: one of a few system prompts, some of them far more popular, and turns that add to it.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};

use fastrand::Rng;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 256;
/// Bytes of a system prompt.
const SYSTEM: usize = 6 * 1024;
/// How many of twenty conversations begin with each system prompt.
const POPULARITY: [usize; 6] = [10, 4, 2, 2, 1, 1];
/// Most turns of a conversation.
const TURNS_MAX: usize = 12;

/// A conversation.
pub(crate) struct Conversation {
    /// Its prompt so far.
    pub(crate) text: String,
    /// A key for each whole block of it and all before: what engines cache.
    pub(crate) blocks: Vec<u64>,
    hasher: DefaultHasher,
    /// Turns that it will still have.
    pub(crate) turns: usize,
    /// A program asks: at once, and for long answers.
    pub(crate) is_program: bool,
}

impl Conversation {
    /// Its system prompt and its first question.
    pub(crate) fn begin(rng: &mut Rng) -> Self {
        let mut place = rng.usize(..POPULARITY.iter().sum::<usize>());
        let system = POPULARITY.iter().position(|share| match place.checked_sub(*share) {
            Some(rest) => {
                place = rest;
                false
            }
            None => true,
        });
        let system = words(&mut Rng::with_seed(system.unwrap() as u64), SYSTEM);
        let question = rng.usize(100..800);
        let mut conversation = Self {
            text: String::new(),
            blocks: Vec::new(),
            hasher: DefaultHasher::new(),
            turns: rng.usize(1..=TURNS_MAX),
            is_program: rng.u8(..8) == 0,
        };
        conversation.add(&system);
        conversation.add(&words(rng, question));
        conversation
    }

    /// The answer and the next question.
    pub(crate) fn go_on(&mut self, rng: &mut Rng, answer_tokens: u64) {
        let length = 4 * usize::try_from(answer_tokens).unwrap() + rng.usize(100..800);
        self.add(&words(rng, length));
        self.turns -= 1;
    }

    fn add(&mut self, words: &str) {
        self.text += words;
        let whole = self.blocks.len() * BLOCK;
        for block in self.text.as_bytes()[whole..].chunks_exact(BLOCK) {
            self.hasher.write(block);
            self.blocks.push(self.hasher.finish());
        }
    }
}

/// Text that nothing else begins with.
fn words(rng: &mut Rng, length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        write!(text, "{:016x}", rng.u64(..)).unwrap();
    }
    text.truncate(length);
    text
}
