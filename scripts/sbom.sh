#!/usr/bin/env bash
# Writes what is inside the binary, as CycloneDX: each library with version, licence, origin and checksum.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-cyclonedx >/dev/null || {
    echo "streamgate: cargo-cyclonedx is missing: cargo install --locked cargo-cyclonedx" >&2
    exit 1
}
host=$(rustc -vV | sed -n 's/^host: //p')
# It writes beside the manifest.
cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$host" --override-filename streamgate.cdx
mkdir -p target/package
mv streamgate.cdx.json target/package/
echo target/package/streamgate.cdx.json
