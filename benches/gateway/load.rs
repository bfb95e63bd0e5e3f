//! Many clients at once.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::client::Ask;
use crate::error::Error;
use crate::judge::Wrong;
use crate::target::Target;

/// Clients that run.
#[derive(Debug)]
pub(crate) struct Load<T> {
    target: Target,
    clients: JoinSet<Result<T, Wrong>>,
}

impl<T: Send + 'static> Load<T> {
    /// Starts `count` clients, one every `spacing`, so that their tokens do not come in step.
    pub(crate) fn start<F>(
        target: Target,
        count: u32,
        spacing: Duration,
        mut client: impl FnMut(u32) -> F,
    ) -> Self
    where
        F: Future<Output = Result<T, Wrong>> + Send + 'static,
    {
        let mut clients = JoinSet::new();
        for number in 0..count {
            let client = client(number);
            clients.spawn(async move {
                tokio::time::sleep(spacing * number).await;
                client.await
            });
        }
        Self { target, clients }
    }

    /// Waits for all of them.
    pub(crate) async fn finish(mut self) -> Finished<T> {
        let (target, all) = (self.target, self.clients.len());
        let mut finished = Finished { target, all, seen: Vec::new(), wrong: 0, first: None };
        while let Some(joined) = self.clients.join_next().await {
            match joined {
                Ok(Ok(one)) => finished.seen.push(one),
                Ok(Err(error)) => {
                    finished.wrong += 1;
                    finished.first.get_or_insert(error);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        finished
    }

    /// All of them go on, as they should before they are told to end.
    ///
    /// # Errors
    /// One has ended.
    pub(crate) fn goes_on(&mut self) -> Result<(), Error> {
        let all = self.clients.len();
        let first = match self.clients.try_join_next() {
            None => return Ok(()),
            Some(Ok(Err(wrong))) => wrong,
            Some(Ok(Ok(_)) | Err(_)) => Wrong::TooEarly,
        };
        Err(Error::Incorrect { target: self.target, wrong: 1, all, first })
    }
}

/// What became of all clients.
#[derive(Debug)]
pub(crate) struct Finished<T> {
    pub(crate) target: Target,
    pub(crate) all: usize,
    /// What those saw whose answers were right, in no order.
    pub(crate) seen: Vec<T>,
    pub(crate) wrong: usize,
    /// The first thing that was wrong.
    pub(crate) first: Option<Wrong>,
}

impl<T> Finished<T> {
    /// # Errors
    /// One or more went wrong.
    pub(crate) fn all_right(self) -> Result<Vec<T>, Error> {
        let Self { target, all, seen, wrong, first } = self;
        first.map_or(Ok(seen), |first| Err(Error::Incorrect { target, wrong, all, first }))
    }
}

/// A stream, under the id `number`.
pub(crate) fn ask_stream(number: u32, wishes: &'static str) -> Ask {
    Ask { id: format!("bench-{number}"), stream: true, wishes }
}
