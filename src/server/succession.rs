//! What a process needs so that another can take over from it.

use std::path::Path;

use super::chain;
use crate::config::Server;
use crate::handover::{Estate, Handed, PrivateSocket, Program};

/// The sockets and the place to ask for them, or why there is none.
pub(super) fn estate(
    server: &Server,
    file: Option<&Path>,
    is_simulated: bool,
    sockets: Vec<Handed>,
) -> Result<Estate, String> {
    let Some(path) = &server.upgrade_socket else { return Err("server.upgrade_socket is not set".into()) };
    let Some(file) = file else { return Err("there is no file to start a successor from".into()) };
    if is_simulated {
        return said(path, "simulated engines (sim) cannot be handed over".into());
    }
    let private = match PrivateSocket::bind(path) {
        Ok(private) => private,
        Err(error) => return said(path, format!("{}: {}", path.display(), chain(&error))),
    };
    match Program::of_this_process(file) {
        Ok(program) => Ok(Estate { private, sockets, program }),
        Err(error) => said(path, format!("where the executable is cannot be told: {}", chain(&error))),
    }
}

/// The file asks for it, and the gateway serves all the same.
fn said(path: &Path, why: String) -> Result<Estate, String> {
    log::error!("server.upgrade_socket {}: nobody can take over from this process: {why}", path.display());
    Err(why)
}
