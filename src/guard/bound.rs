//! Bounds on the value of a field.

use crate::openai::{Dialect, Elements, Found, Places, Pointer, Pointers, whole_number};
use crate::rejection::Rejection;

/// The limits of a guard; `None` = no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Most tokens of an answer.
    pub max_tokens: Option<u64>,
    /// Most answers.
    pub n: Option<u64>,
    /// Most answers that the best are chosen from.
    pub best_of: Option<u64>,
    /// Most prompts.
    pub prompts: Option<u64>,
    /// Most alternatives for each token.
    pub logprobs: Option<u64>,
    /// Most tools.
    pub tools: Option<u64>,
    /// Deepest JSON schema.
    pub schema_depth: Option<u64>,
}

/// The bound on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    /// The limit's name in the access log.
    rule: &'static str,
    field: &'static str,
    /// Its number among the pointers of the walk.
    pointer: usize,
    measure: Measure,
    most: u64,
}

/// What of a value is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// The number itself. A negative one means "all" or "no end" to some engines, so it is no count.
    Number,
    /// The number itself, or `true`, which is 1.
    Flag,
    /// The elements of a list.
    List,
    /// The prompts of a list, which may be the tokens of one; a string is one.
    Prompts,
}

/// One of the limits.
type Limit = fn(&Limits) -> Option<u64>;

/// The outermost fields that each limit is about, and its name in the access log: OpenAI's, and those of engines that read further names.
const FIELDS: [(&str, Limit, Measure, &[&str]); 6] = [
    (
        "guard.max_tokens",
        |limits| limits.max_tokens,
        Measure::Number,
        // llama.cpp prefers its own name to OpenAI's.
        &["max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"],
    ),
    ("guard.n", |limits| limits.n, Measure::Number, &["n"]),
    ("guard.best_of", |limits| limits.best_of, Measure::Number, &["best_of"]),
    (
        "guard.logprobs",
        |limits| limits.logprobs,
        Measure::Flag,
        &["logprobs", "top_logprobs", "prompt_logprobs"],
    ),
    ("guard.tools", |limits| limits.tools, Measure::List, &["tools", "functions"]),
    (
        "guard.prompts",
        |limits| limits.prompts,
        Measure::Prompts,
        &["prompt", "input", "documents", "text_1", "text_2"],
    ),
];

/// The bounds of some limits; `pointers` learns where they are.
pub(super) fn all(limits: &Limits, pointers: &mut Pointers) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (rule, limit, measure, fields) in FIELDS {
        let Some(most) = limit(limits) else { continue };
        for &field in fields {
            let Some(pointer) = Pointer::parse(&format!("/{field}")) else { continue };
            let pointer = match measure {
                Measure::Number | Measure::Flag => pointers.add(pointer),
                Measure::List | Measure::Prompts => pointers.add_counted(pointer),
            };
            bounds.push(Bound { rule, field, pointer, measure, most });
        }
    }
    bounds
}

impl Bound {
    /// Refuses a field that is there and asks too much.
    pub(super) fn check(
        &self,
        body: &[u8],
        places: &Places,
        pointers: &Pointers,
        dialect: Dialect,
    ) -> Result<(), Rejection> {
        // The input of a response is a conversation, however many items it has.
        let is_conversation = dialect == Dialect::Responses && self.measure == Measure::Prompts;
        let Found::Value(span) = places.find(body, pointers, self.pointer) else { return Ok(()) };
        if is_conversation {
            return Ok(());
        }
        let elements = places.elements(pointers, self.pointer);
        if self.measure == Measure::Prompts && elements.is_some_and(|elements| elements.prompts().is_none()) {
            return Err(self.mixed());
        }
        match self.measure(&body[span], elements) {
            Some(asked) if asked <= self.most => Ok(()),
            _ => Err(self.refusal()),
        }
    }

    /// How much a value asks; `None` where it is nothing that could be bounded.
    fn measure(&self, value: &[u8], elements: Option<Elements>) -> Option<u64> {
        let number = || std::str::from_utf8(value).ok().and_then(whole_number);
        match (self.measure, value) {
            (Measure::Flag, b"false") => Some(0),
            (Measure::Flag, b"true") => Some(1),
            (Measure::Number | Measure::Flag, _) => number(),
            (Measure::List, _) => Some(elements?.count as u64),
            (Measure::Prompts, [b'"', ..]) => Some(1),
            (Measure::Prompts, _) => elements?.prompts(),
        }
    }

    fn mixed(&self) -> Rejection {
        let field = self.field;
        let message = format!(
            "the field {field} must be a text, or a list of texts alone, of tokens alone or of lists alone: how many prompts a mixed one has is read in several ways"
        );
        Rejection::invalid(message, Some(field))
    }

    fn refusal(&self) -> Rejection {
        let Self { rule, field, most, .. } = self;
        let message = match self.measure {
            Measure::Number | Measure::Flag => {
                format!("the field {field} must be a whole number of at most {most} here")
            }
            Measure::List => format!("the field {field} must be a list of at most {most} here"),
            Measure::Prompts => format!("the field {field} may hold at most {most} prompts here"),
        };
        Rejection::invalid(message, Some(field)).by(rule)
    }
}
