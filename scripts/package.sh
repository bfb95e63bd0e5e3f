#!/usr/bin/env bash
# Makes what is handed to others: `package.sh dist` a tar.gz with its checksum, `package.sh deb` a Debian package. Both
# hold the same binary, which has OpenSSL inside and needs nothing but glibc.
# STREAMGATE_STAGE_ONLY, the path of a binary, has it lay out the files beside the binary and stop: that is for tests.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?"dist or deb"}
stage=${STREAMGATE_STAGE:-target/package/stage}

# Everything that is made for a package and is not in the repository.
lay_out() {
    local binary=$1
    rm -rf "$stage"
    mkdir -p "$stage/man" "$stage/completions" "$stage/systemd"
    "$binary" man "$stage/man"
    "$binary" completions bash >"$stage/completions/streamgate.bash"
    "$binary" completions zsh >"$stage/completions/_streamgate"
    "$binary" completions fish >"$stage/completions/streamgate.fish"
    scripts/third-party.py >"$stage/THIRD-PARTY.txt"
    # A package has its binary elsewhere, and a user who stays, so that files can be given to it.
    sed -e 's|/usr/local/bin/|/usr/bin/|g' -e 's|^DynamicUser=yes$|User=streamgate\nRemoveIPC=yes|' \
        deploy/systemd/streamgate.service >"$stage/systemd/streamgate.service"
}

if [ -n "${STREAMGATE_STAGE_ONLY:-}" ]; then
    lay_out "$STREAMGATE_STAGE_ONLY"
    exit 0
fi

# A folder of its own: with OpenSSL inside half of the libraries are built anew, and back again by the next `cargo build`.
export CARGO_TARGET_DIR=target/package/build OPENSSL_NO_VENDOR=0
cargo build --locked --release --bin streamgate
mkdir -p target/package/bin
binary=target/package/bin/streamgate
strip -o "$binary" "$CARGO_TARGET_DIR/release/streamgate"
lay_out "$binary"
# Files are as old as the last commit, so that the same tree makes the same archive.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

dist() {
    local version name folder
    version=$("$binary" --version | cut -d' ' -f2)
    name=streamgate-$version-$(uname -m)-linux-gnu
    folder=target/package/$name
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$binary" LICENSE README.md CHANGELOG.md SECURITY.md "$stage/THIRD-PARTY.txt" "$folder"
    cp -r "$stage/man" "$stage/completions" conf docs "$folder"
    mkdir "$folder/deploy"
    cp -r deploy/systemd deploy/prometheus deploy/grafana deploy/kubernetes "$folder/deploy"
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C target/package -c "$name" |
        gzip -9n >"target/package/$name.tar.gz"
    rm -rf "$folder"
    (cd target/package && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
    echo "target/package/$name.tar.gz"
}

deb() {
    command -v cargo-deb >/dev/null || {
        echo "streamgate: cargo-deb is missing: cargo install --locked cargo-deb" >&2
        exit 1
    }
    cargo deb --no-build --output target/package/
}

"$what"
