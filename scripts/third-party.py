#!/usr/bin/env python3
"""Prints the libraries inside the binary with their licences, and the text of each licence once.

Read from `cargo metadata`: what the binary links on the platform of the build, without what only tests or build scripts
use. Crates that carry a C library (OpenSSL, jemalloc, zlib-ng) have its licence in a folder below their own.
"""

import json
import pathlib
import subprocess
import sys

NAMES = ("licen", "copying", "notice", "copyright")


def host():
    lines = subprocess.check_output(["rustc", "-vV"], text=True).splitlines()
    return next(line.split(": ")[1] for line in lines if line.startswith("host"))


def metadata():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host()]
    return json.loads(subprocess.check_output(command))


def linked(data):
    """Ids of the packages inside the binary, without the binary itself."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    root = data["resolve"]["root"]
    found, waiting = set(), [root]
    while waiting:
        for dep in nodes[waiting.pop()]["deps"]:
            # A build script of openssl-sys or of jemalloc's crate puts C code in: those of `*-sys` count, and sources.
            kinds = {kind["kind"] for kind in dep["dep_kinds"]}
            is_source = "build" in kinds and dep["name"].endswith("_src")
            if (None in kinds or is_source) and dep["pkg"] not in found:
                found.add(dep["pkg"])
                waiting.append(dep["pkg"])
    return found


def texts(package):
    """Licence files of a crate: its own, and those of C code at most two folders below."""
    folder = pathlib.Path(package["manifest_path"]).parent
    patterns = ("*", "*/*", "*/*/*") if package["name"].endswith(("-sys", "-src")) else ("*",)
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and path.name.lower().startswith(NAMES) and path.stat().st_size < 200_000:
                yield path.read_text(errors="replace").strip()


def main():
    data = metadata()
    wanted = linked(data)
    packages = sorted((p for p in data["packages"] if p["id"] in wanted), key=lambda p: (p["name"], p["version"]))
    users = {}
    print("Libraries inside the streamgate binary, and the terms they come under.\n")
    for package in packages:
        name = f"{package['name']} {package['version']}"
        licence = package["license"] or package["license_file"]
        if not licence:
            sys.exit(f"{name} names no licence")
        print(f"{name}: {licence}" + (f" ({package['repository']})" if package["repository"] else ""))
        for text in texts(package):
            users.setdefault(text, []).append(name)
    for text, names in users.items():
        print(f"\n{'=' * 100}\n{', '.join(dict.fromkeys(names))}\n{'=' * 100}\n\n{text}")


main()
