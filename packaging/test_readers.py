"""Tests for the parts of project.py and wheel.py that need no real binary: headers, tags, versions."""

import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from project import PackagingError, PLATFORMS, Binary, debian_depends, read_binary, readme
from wheel import platform_tag, python_version

LINUX, _, MAC, MAC_ARM = PLATFORMS


def macho(cpu, command, version):
    """A Mach-O header with one load command that says the oldest macOS."""
    body = struct.pack("<IIIIII", command, 24, *((1, version, 0, 0) if command == 0x32 else (version, 0, 0, 0)))
    return struct.pack("<IIIIIIII", 0xFEEDFACF, cpu, 0, 2, 1, len(body), 0, 0) + body


def portable_executable(machine):
    return b"MZ" + bytes(0x3A) + struct.pack("<I", 0x40) + b"PE\0\0" + struct.pack("<H", machine)


class Headers(unittest.TestCase):
    def read(self, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return read_binary(file.name)

    def test_macos_programs(self):
        binary = self.read(macho(0x0100000C, 0x32, 11 << 16))
        self.assertEqual((binary.platform.name, binary.macos), ("macos-aarch64", (11, 0)))
        binary = self.read(macho(0x01000007, 0x24, 10 << 16 | 12 << 8))
        self.assertEqual((binary.platform.name, binary.macos), ("macos-x86_64", (10, 12)))

    def test_static_linux_program_needs_no_glibc(self):
        header = b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", 183) + bytes(44)
        self.assertEqual(self.read(header), Binary(PLATFORMS[1]))

    def test_other_files_are_refused(self):
        for data in (b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01", portable_executable(0x8664), macho(7, 0x32, 0)[:20]):
            with self.assertRaises(PackagingError):
                self.read(data)


class Tags(unittest.TestCase):
    def test_linux(self):
        binary = Binary(LINUX, ("libc.so.6", "ld-linux-x86-64.so.2"), (2, 28))
        self.assertEqual(platform_tag(binary, "2.28"), "manylinux_2_28_x86_64")
        self.assertEqual(platform_tag(binary, "auto"), "manylinux_2_28_x86_64")
        # 2.4 is older than 2.28, although the text sorts after it.
        with self.assertRaises(PackagingError):
            platform_tag(binary, "2.4")

    def test_libraries_outside_manylinux_are_refused(self):
        with self.assertRaises(PackagingError):
            platform_tag(Binary(LINUX, ("libssl.so.3",), (2, 17)), "2.28")

    def test_macos(self):
        self.assertEqual(platform_tag(Binary(MAC_ARM, macos=(11, 0)), "2.28"), "macosx_11_0_arm64")
        with self.assertRaises(PackagingError):
            platform_tag(Binary(MAC, macos=(10, 13)), "2.28")


class Texts(unittest.TestCase):
    def test_versions(self):
        self.assertEqual(python_version("0.1.0"), "0.1.0")
        self.assertEqual(python_version("0.2.0-rc.1"), "0.2.0rc1")
        with self.assertRaises(PackagingError):
            python_version("0.2.0-nightly")

    def test_debian_dependencies(self):
        binary = Binary(LINUX, ("libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"), (2, 28))
        self.assertEqual(debian_depends(binary), "libc6 (>= 2.28), libgcc-s1")
        with self.assertRaises(PackagingError):
            debian_depends(Binary(LINUX, ("libssl.so.3",), (2, 28)))

    def test_links_of_the_readme_are_absolute(self):
        self.assertNotRegex(readme(), r"\]\((docs/|LICENSE|CONTRIBUTING|CHANGELOG)")


if __name__ == "__main__":
    unittest.main()
