#!/usr/bin/env python3
"""Write the npm packages: `savoir` (a launcher) and the package of one platform (the binary).

The same binary and sources give identical bytes.
"""

import argparse
import gzip
import io
import json
import pathlib
import tarfile

from notices import notices
from project import FIXED_TIME, PLATFORMS, ROOT, main_with_hints, manifest, read_binary, readme


def package_json(fields, **more):
    document = {
        "name": more.pop("name"),
        "version": fields["version"],
        "description": more.pop("description"),
        "license": fields["license"],
        "author": fields["authors"][0],
        "repository": {"type": "git", "url": f"git+{fields['repository']}.git"},
        **more,
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def write_package(out_dir, file_name, files):
    """Write a .tgz with sorted entries, one time and no owner. Programs get the executable bit."""
    path = pathlib.Path(out_dir) / file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        open(path, "wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=9, mtime=FIXED_TIME) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(files[name])
            entry.mtime = FIXED_TIME
            entry.mode = 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="built savoir")
    parser.add_argument("out_dir", help="folder for the packages")
    args = parser.parse_args()

    fields = manifest()
    version = fields["version"]
    platform = read_binary(args.binary).platform
    licenses = {name: (ROOT / name).read_bytes() for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    linked = {"THIRD-PARTY-NOTICES": notices().encode()}

    # npm skips a package whose os, cpu or libc differ from those of the machine.
    system = {"os": [platform.npm_os], "cpu": [platform.npm_cpu]}
    if platform.npm_os == "linux":
        system["libc"] = ["glibc"]
    about = f"The binary of savoir for {platform.name}; install the package `savoir` instead"
    write_package(
        args.out_dir,
        f"savoir-{platform.npm_os}-{platform.npm_cpu}-{version}.tgz",
        {
            "package.json": package_json(fields, name=platform.npm_name, description=about, **system, preferUnplugged=True),
            "README.md": f"# {platform.npm_name}\n\n{about}.\n".encode(),
            "bin/savoir": pathlib.Path(args.binary).read_bytes(),
            **licenses,
            **linked,
        },
    )
    write_package(
        args.out_dir,
        f"savoir-{version}.tgz",
        {
            "package.json": package_json(
                fields,
                name="savoir",
                description=fields["description"],
                keywords=["skill", "agent", "linter", "converter", "markdown"],
                bin={"savoir": "bin/savoir.js"},
                engines={"node": ">=18"},
                optionalDependencies={p.npm_name: version for p in PLATFORMS},
            ),
            "README.md": readme().encode(),
            "bin/savoir.js": (ROOT / "packaging/npm/savoir.js").read_bytes(),
            **licenses,
        },
    )


if __name__ == "__main__":
    main_with_hints(main)
