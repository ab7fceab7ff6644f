"""Tests the adapter for AMD GAIA with the real `amd-gaia`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import unittest

from support import ROOT


@unittest.skipUnless(importlib.util.find_spec("gaia"), "amd-gaia is not installed")
class Gaia(unittest.TestCase):
    def test_example(self):
        path = ROOT / "python" / "examples" / "gaia_local.py"
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.strip().splitlines()
        self.assertIn("GAIA alone:", done.stdout)
        self.assertEqual(lines[-2:], ["outside of the folder: RunError", "lines: 2"])
