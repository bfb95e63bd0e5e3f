//! nginx as a careful operator would set it up for event streams, with one worker.
//!
//! Its port is reserved for it (`process::Proxy`).

use std::net::SocketAddr;
use std::path::Path;

use crate::error::Error;
use crate::process::Proxy;

/// Starts it in front of `engine`, with its files in `dir`.
pub(crate) async fn start(engine: SocketAddr, dir: &Path) -> Result<Proxy, Error> {
    let args = |addrs| {
        let file = dir.join("nginx.conf");
        std::fs::write(&file, configuration(addrs, engine, dir))
            .map_err(|error| Error::io("write nginx's configuration", error))?;
        let arg = |path: &Path| path.display().to_string();
        Ok(vec!["-e".into(), "stderr".into(), "-p".into(), arg(dir), "-c".into(), arg(&file)])
    };
    Proxy::start("nginx", "nginx", args).await
}

/// `master_process off` makes the one worker the process that we start, measure and end; it serves
/// in the same way. `dir` has the certificate. Idle upstream connections are closed before the engine (5 s) would.
fn configuration([addr, secure]: [SocketAddr; 2], engine: SocketAddr, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "daemon off;
master_process off;
pid {dir}/nginx.pid;
error_log stderr error;
events {{ worker_connections 65536; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    client_max_body_size 64m;
    upstream engine {{
        server {engine};
        keepalive 1024;
        keepalive_timeout 4s;
    }}
    server {{
        listen {addr} reuseport backlog=4096;
        listen {secure} ssl http2 reuseport backlog=4096;
        ssl_certificate {dir}/server.crt;
        ssl_certificate_key {dir}/server.key;
        ssl_protocols TLSv1.3;
        location / {{
            proxy_pass http://engine;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
            proxy_read_timeout 1h;
            send_timeout 10m;
        }}
    }}
}}
"
    )
}
