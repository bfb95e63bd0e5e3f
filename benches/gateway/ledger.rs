//! What went wrong with contenders, which is a figure of theirs and not the end of the run.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::{self, Error};
use crate::load::Finished;
use crate::sheet::{Figure, Remark};
use crate::target::Target;

/// One scenario's.
#[derive(Debug, Default)]
pub(crate) struct Ledger(RefCell<BTreeMap<Target, Account>>);

#[derive(Debug, Default)]
struct Account {
    answers: usize,
    wrong: usize,
    remarks: Vec<String>,
    /// It takes no further part.
    is_out: bool,
}

impl Ledger {
    /// What those saw whose answers were right.
    ///
    /// # Errors
    /// One was wrong and must not be, or none was right.
    pub(crate) fn accept<T>(&self, finished: Finished<T>) -> Result<Vec<T>, Error> {
        if !finished.target.may_fail() {
            return finished.all_right();
        }
        self.with(finished.target, |account| {
            account.answers += finished.all;
            account.wrong += finished.wrong;
            if let Some(first) = &finished.first {
                account.remark(format!("the first wrong answer: {}", error::chain(first)));
            }
        });
        if finished.seen.is_empty() { finished.all_right() } else { Ok(finished.seen) }
    }

    /// Notes something.
    pub(crate) fn remark(&self, target: Target, text: impl Into<String>) {
        self.with(target, |account| account.remark(text.into()));
    }

    /// It takes no further part.
    pub(crate) fn leave_out(&self, target: Target) {
        self.with(target, |account| account.is_out = true);
    }

    pub(crate) fn is_out(&self, target: Target) -> bool {
        self.with(target, |account| account.is_out)
    }

    /// How many of a hundred answers were wrong, where anybody took part whose answers may be.
    pub(crate) fn figure(&self, scenario: &str) -> Option<Figure> {
        let accounts = self.0.borrow();
        let share = |(target, account): (&Target, &Account)| {
            let share = account.wrong as f64 * 100.0 / account.answers as f64;
            (account.answers > 0).then(|| (target.name().to_owned(), share))
        };
        let values: BTreeMap<String, f64> = accounts.iter().filter_map(share).collect();
        (!values.is_empty()).then(|| Figure::new(scenario, "answers wrong", "%", values))
    }

    pub(crate) fn remarks(&self, scenario: &str) -> Vec<Remark> {
        let accounts = self.0.borrow();
        let remarks = accounts.iter().flat_map(|(target, account)| {
            account.remarks.iter().map(|text| Remark {
                scenario: scenario.to_owned(),
                name: target.name().to_owned(),
                text: text.clone(),
            })
        });
        remarks.collect()
    }

    fn with<T>(&self, target: Target, then: impl FnOnce(&mut Account) -> T) -> T {
        then(self.0.borrow_mut().entry(target).or_default())
    }
}

impl Account {
    /// Once, however often it happens.
    fn remark(&mut self, text: String) {
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }
}
