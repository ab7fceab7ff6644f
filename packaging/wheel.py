#!/usr/bin/env python3
"""Write a Python wheel with the package savoir_skills, its native module and the savoir binary.

The same binary and sources give identical bytes.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import stat
import zipfile

from notices import notices
from project import PLATFORMS, ROOT, PackagingError, main_with_hints, manifest, read_binary, readme

NAME = "savoir-skills"  # the name `savoir` belongs to another project

# The package that programs import.
PACKAGE = ROOT / "python" / "savoir_skills"

# Libraries that every system with a manylinux tag has.
MANYLINUX_LIBRARIES = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.\d+")


def python_version(version):
    """Turn 0.2.0-rc.1 into 0.2.0rc1, as Python writes it."""
    match = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if not match:
        raise PackagingError(f"version {version} has no Python form", "use X.Y.Z or X.Y.Z-rc.N (alpha, beta)")
    release, stage, number = match.groups()
    return release + ({"alpha": "a", "beta": "b", "rc": "rc"}[stage] + number if stage else "")


def platform_tag(binary, glibc):
    """The tag of the wheel. Fails if the binary needs a newer system than the tag says."""
    platform = binary.platform
    if platform.npm_os == "linux":
        needed = binary.glibc or (2, 17)
        tagged = max(needed, (2, 17)) if glibc == "auto" else tuple(map(int, glibc.split(".")))
        if needed > tagged:
            raise PackagingError(
                f"the binary needs glibc {'.'.join(map(str, needed))}, newer than {glibc}",
                f"build it with `cargo zigbuild --target {platform.target}.{glibc}`, or pass --glibc auto",
            )
        other = [library for library in binary.libraries if not MANYLINUX_LIBRARIES.fullmatch(library)]
        if other:
            raise PackagingError(
                f"the binary needs {', '.join(other)}, which manylinux does not guarantee", "link it statically"
            )
        return platform.wheel_tag.format(glibc="_".join(map(str, tagged[:2])))
    if platform.npm_os == "darwin":
        tagged = tuple(map(int, platform.wheel_tag.split("_")[1:3]))
        if binary.macos and binary.macos > tagged:
            raise PackagingError(
                f"the binary needs macOS {'.'.join(map(str, binary.macos))}, newer than {'.'.join(map(str, tagged))}",
                f"build it with MACOSX_DEPLOYMENT_TARGET={'.'.join(map(str, tagged))}",
            )
    return platform.wheel_tag


def native_module(binary_path, binary):
    """The path of the native module that was built beside a binary."""
    name = {"linux": "libsavoir_native.so", "darwin": "libsavoir_native.dylib"}
    return pathlib.Path(binary_path).with_name(name[binary.platform.npm_os])


def package_files(native_path):
    """The files of the Python package, by their path in the wheel."""
    files = {f"{PACKAGE.name}/_native.abi3.so": native_path.read_bytes()}
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            files[path.relative_to(PACKAGE.parent).as_posix()] = path.read_bytes()
    return files


def metadata(fields, version):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {NAME}",
        f"Version: {version}",
        f"Summary: {fields['description']}",
        f"Author: {', '.join(fields['authors'])}",
        f"License-Expression: {fields['license']}",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        "License-File: THIRD-PARTY-NOTICES",
        f"Project-URL: Repository, {fields['repository']}",
        f"Project-URL: Changelog, {fields['repository']}/blob/v{fields['version']}/CHANGELOG.md",
        "Keywords: skill,agent,linter,converter,markdown",
        "Classifier: Environment :: Console",
        "Classifier: Programming Language :: Python :: 3 :: Only",
        "Classifier: Programming Language :: Rust",
        "Classifier: Topic :: Software Development :: Quality Assurance",
        "Classifier: Typing :: Typed",
        "Requires-Python: >=3.10",
        "Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM",
    ]
    return ("\n".join(lines) + "\n\n" + readme()).encode()


def write_wheel(binary_path, out_dir, platform_name=None, glibc="2.28", native_path=None, level=9):
    """Write the wheel and return its path."""
    binary = read_binary(binary_path)
    if platform_name not in (None, binary.platform.name):
        raise PackagingError(
            f"{binary_path} is for {binary.platform.name}, not for {platform_name}", "pass the binary of that platform"
        )
    native_path = pathlib.Path(native_path or native_module(binary_path, binary))
    native = read_binary(native_path)
    if native.platform != binary.platform:
        raise PackagingError(
            f"{native_path} is for {native.platform.name}, and {binary_path} for {binary.platform.name}",
            "build both for the same platform",
        )
    fields = manifest()
    version = python_version(fields["version"])
    # Both programs must run on the systems of the tag.
    newest = max((binary, native), key=lambda one: (one.glibc or (), one.macos or ()))
    for one in (binary, native):
        platform_tag(one, glibc)
    # The stable interface of Python 3.10, so newer versions load it, too.
    tag = f"cp310-abi3-{platform_tag(newest, glibc)}"
    stem = f"{NAME.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"

    files = {
        **package_files(native_path),
        f"{stem}.data/scripts/savoir": pathlib.Path(binary_path).read_bytes(),
        f"{info}/METADATA": metadata(fields, version),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: savoir\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{info}/licenses/LICENSE-APACHE": (ROOT / "LICENSE-APACHE").read_bytes(),
        f"{info}/licenses/LICENSE-MIT": (ROOT / "LICENSE-MIT").read_bytes(),
        f"{info}/licenses/THIRD-PARTY-NOTICES": notices().encode(),
    }
    record = []
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(files[name])}\n")
    record.append(f"{info}/RECORD,,\n")

    path = pathlib.Path(out_dir) / f"{stem}-{tag}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        # RECORD is last, as the wheel format recommends.
        for name in [*sorted(files), f"{info}/RECORD"]:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, so that the permissions are read
            mode = 0o755 if ".data/scripts/" in name else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files.get(name, "".join(record).encode()), compresslevel=level)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="built savoir")
    parser.add_argument("out_dir", help="folder for the wheel")
    parser.add_argument(
        "--platform", choices=[p.name for p in PLATFORMS], help="fail if the binary is for another platform"
    )
    parser.add_argument(
        "--glibc",
        default="2.28",
        metavar="VERSION",
        help="oldest glibc that the wheel is for, or `auto` for the one that the binary needs [default: 2.28]",
    )
    parser.add_argument("--native", help="built native module [default: the one beside the binary]")
    parser.add_argument(
        "--compress", type=int, default=9, choices=range(10), metavar="LEVEL", help="0 is fast [default: 9]"
    )
    args = parser.parse_args()
    if args.glibc != "auto" and not re.fullmatch(r"2\.\d+", args.glibc):
        parser.error("--glibc takes a version such as 2.28, or auto")
    print(write_wheel(args.binary, args.out_dir, args.platform, args.glibc, args.native, args.compress))


if __name__ == "__main__":
    main_with_hints(main)
