//! What is told of a panic: the place, and its words if they are fixed ones. Words that are put together may hold
//! a piece of what a client sent (a text that is cut within a character is shown), which the log never does.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

/// From now on the log tells of panics.
pub(super) fn tell() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        log::error!("panicked at {place}: {}", words(panic));
        // Only where RUST_BACKTRACE asks for it.
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            log::error!("{trace}");
        }
        // It ends the process, which does not wait for the log; clients are served by other threads.
        if std::thread::current().name() == Some("main") {
            before(panic);
        }
    }));
}

fn words<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("words that may be a client's")
}
