//! Having the allocator give back what it keeps.
//!
//! jemalloc keeps freed pages for ten seconds, lest they be wanted again, and gives them back as a part of later
//! work: a process that has nothing to do after a flood would keep them for ever, unless a thread is there for it.
//! To the one who kills processes they are used, so while memory is short they go back at once. There is no name in its control tree that does just that
//! and can be written to without `unsafe`; but a decay time of zero gives back all that waits, and then the time
//! is set as it was.

use tikv_jemalloc_ctl::{Access as _, AsName as _, Result, background_thread};

/// Has pages given back in time, also if nothing else is done.
pub(super) fn begin() {
    if let Err(error) = background_thread::write(true) {
        log::debug!("the allocator gives pages back only while there is work: {error}");
    }
}

/// Gives back the freed pages of every arena at once.
pub(super) fn purge() {
    if let Err(error) = all() {
        log::debug!("the allocator gave nothing back: {error}");
    }
}

fn all() -> Result<()> {
    let arenas: u32 = b"arenas.narenas\0"[..].name().read()?;
    for arena in 0..arenas {
        let name = format!("arena.{arena}.dirty_decay_ms\0");
        // Arenas are made when they are first used: one that is not there yet has nothing.
        let name = name.as_str().name();
        let Ok(decay) = name.read() else { continue };
        let decay: isize = decay;
        name.write(0_isize)?;
        name.write(decay)?;
    }
    Ok(())
}
