#!/usr/bin/env python3
"""What the packaging scripts need to know about the project and about a built binary.

    project.py version|repository|license|description
    project.py target BINARY         Rust target, such as x86_64-unknown-linux-gnu
    project.py debian-arch BINARY    amd64 or arm64
    project.py debian-depends BINARY libraries that the binary needs, as Debian packages
    project.py glibc BINARY          oldest glibc that the binary runs with
"""

import dataclasses
import pathlib
import re
import struct
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent

# One time for all files in all packages, so that two builds give identical bytes: 1980-01-01, the
# earliest time that a zip archive can store.
FIXED_TIME = 315532800


class PackagingError(Exception):
    """A problem that the user can solve; `hint` says how."""

    def __init__(self, message, hint):
        super().__init__(message)
        self.hint = hint


def main_with_hints(main):
    """Run `main` and print a `PackagingError` as two lines instead of a traceback."""
    try:
        main()
    except PackagingError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        sys.exit(1)


# --- the project


def manifest():
    """The fields of [workspace.package], and the description of the program."""
    with open(ROOT / "Cargo.toml", "rb") as file:
        fields = tomllib.load(file)["workspace"]["package"]
    with open(ROOT / "crates/savoir/Cargo.toml", "rb") as file:
        fields["description"] = tomllib.load(file)["package"]["description"]
    return fields


def readme():
    """README.md with absolute links, because package indexes do not have the other files."""
    fields = manifest()
    page = f"{fields['repository']}/blob/v{fields['version']}/"
    image = f"{fields['repository']}/raw/v{fields['version']}/"

    def absolute(match):
        bang, text, link = match.groups()
        if re.match(r"[a-z]+:|#", link):
            return match.group(0)
        return f"{bang}[{text}]({image if bang else page}{link})"

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", absolute, text)


# --- platforms


@dataclasses.dataclass(frozen=True)
class Platform:
    name: str  # what `wheel.py --platform` takes
    target: str  # the name that Rust uses
    npm_os: str
    npm_cpu: str
    wheel_tag: str  # with {glibc} for Linux
    debian_arch: str | None = None

    @property
    def npm_name(self):
        return f"@savoir/{self.npm_os}-{self.npm_cpu}"


PLATFORMS = [
    Platform("linux-x86_64", "x86_64-unknown-linux-gnu", "linux", "x64", "manylinux_{glibc}_x86_64", "amd64"),
    Platform("linux-aarch64", "aarch64-unknown-linux-gnu", "linux", "arm64", "manylinux_{glibc}_aarch64", "arm64"),
    Platform("macos-x86_64", "x86_64-apple-darwin", "darwin", "x64", "macosx_10_12_x86_64"),
    Platform("macos-aarch64", "aarch64-apple-darwin", "darwin", "arm64", "macosx_11_0_arm64"),
]


# --- binaries


@dataclasses.dataclass(frozen=True)
class Binary:
    platform: Platform
    libraries: tuple = ()  # Linux: shared libraries that it loads
    glibc: tuple | None = None  # Linux: the newest glibc version that it needs
    macos: tuple | None = None  # macOS: the oldest system that it runs on


def read_binary(path):
    """Read the headers of a program for Linux or macOS."""
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise PackagingError(f"cannot read {path}: {error.strerror}", "pass the path of a built savoir") from error
    try:
        system, machine, fields = read_headers(data)
        platform = next(p for p in PLATFORMS if p.name == f"{system}-{machine}")
    except (struct.error, IndexError, StopIteration, ValueError) as error:
        names = ", ".join(p.name for p in PLATFORMS)
        raise PackagingError(f"{path} is not a program for a supported platform", f"build it for one of: {names}") from error
    return Binary(platform, **fields)


def read_headers(data):
    """The system, the processor, and what the program needs from the system."""
    if data[:6] == b"\x7fELF\x02\x01":  # 64 bits, little-endian
        machine = {62: "x86_64", 183: "aarch64"}.get(struct.unpack_from("<H", data, 18)[0])
        return "linux", machine, read_elf(data)
    if data[:4] == b"\xcf\xfa\xed\xfe":
        machine = {0x01000007: "x86_64", 0x0100000C: "aarch64"}.get(struct.unpack_from("<I", data, 4)[0])
        return "macos", machine, {"macos": read_oldest_macos(data)}
    raise ValueError("unknown format")


def read_elf(data):
    """Libraries (DT_NEEDED) and symbol versions (DT_VERNEED) of an ELF file.

    It reads the dynamic segment and not the sections, because `strip` can remove the sections.
    """
    start, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQ", data, start + i * size) for i in range(count)]
    loads = [(address, offset, length) for kind, _, offset, address, _, length in headers if kind == 1]
    dynamic = [(offset, length) for kind, _, offset, _, _, length in headers if kind == 2]
    if not dynamic:
        return {}  # statically linked

    def offset_of(address):
        return next(offset + address - first for first, offset, length in loads if first <= address < first + length)

    def text(position):
        return data[position : data.index(b"\0", position)].decode("ascii")

    offset, length = dynamic[0]
    entries = [struct.unpack_from("<QQ", data, offset + i) for i in range(0, length, 16)]
    entries = entries[: next((i for i, (tag, _) in enumerate(entries) if tag == 0), len(entries))]
    values = dict(entries)
    strings = offset_of(values[5])
    libraries = tuple(text(strings + value) for tag, value in entries if tag == 1)

    versions = []
    if 0x6FFFFFFE in values:
        need = offset_of(values[0x6FFFFFFE])
        for _ in range(values[0x6FFFFFFF]):
            _, uses, _, first, following = struct.unpack_from("<HHIII", data, need)
            use = need + first
            for _ in range(uses):
                _, _, _, name, next_use = struct.unpack_from("<IHHII", data, use)
                versions.append(text(strings + name))
                use += next_use
            need += following
    glibc = [tuple(map(int, v[6:].split("."))) for v in versions if re.fullmatch(r"GLIBC_[0-9.]+", v)]
    return {"libraries": libraries, "glibc": max(glibc, default=None)}


def read_oldest_macos(data):
    """The version in LC_BUILD_VERSION or LC_VERSION_MIN_MACOSX of a Mach-O file."""
    position = 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, position)
        if command in (0x32, 0x24):
            version = struct.unpack_from("<I", data, position + (12 if command == 0x32 else 8))[0]
            return version >> 16, version >> 8 & 0xFF
        position += size
    return None


def debian_depends(binary):
    """The value of `Depends` for a Linux binary."""
    packages = {"libgcc_s.so.1": "libgcc-s1"}
    part_of_libc = re.compile(r"(libc|libm|libdl|libpthread|librt|libutil|ld-linux-[a-z0-9-]+)\.so\.\d+")
    depends = []
    if binary.glibc:
        depends.append(f"libc6 (>= {'.'.join(map(str, binary.glibc))})")
    for library in binary.libraries:
        if part_of_libc.fullmatch(library):
            continue
        if library not in packages:
            raise PackagingError(f"no Debian package is known for {library}", "add it to debian_depends in project.py")
        depends.append(packages[library])
    return ", ".join(depends)


def main():
    match sys.argv[1:]:
        case [("version" | "repository" | "license" | "description") as field]:
            print(manifest()[field])
        case ["target", path]:
            print(read_binary(path).platform.target)
        case ["debian-arch", path]:
            platform = read_binary(path).platform
            if platform.debian_arch is None:
                raise PackagingError(f"{path} is for {platform.name}", "build the Debian package from a Linux binary")
            print(platform.debian_arch)
        case ["debian-depends", path]:
            print(debian_depends(read_binary(path)))
        case ["glibc", path]:
            print(".".join(map(str, read_binary(path).glibc or ())))
        case _:
            print(__doc__.strip(), file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main_with_hints(main)
