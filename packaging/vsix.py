#!/usr/bin/env python3
"""Write the extension for VS Code, a .vsix file, with or without the program in it.

    vsix.py OUT_DIR                    it uses the savoir on the PATH
    vsix.py OUT_DIR --binary SAVOIR    for one platform, with this program

Needs Node.js 20, and npm for the packages that are bundled into it: the first time, npm downloads
them. The same binary and sources give identical bytes.
"""

import argparse
import json
import os
import pathlib
import re
import stat
import subprocess
import tempfile
import zipfile
from xml.sax.saxutils import escape, quoteattr

from project import ROOT, PackagingError, main_with_hints, manifest, read_binary

SOURCE = ROOT / "editors" / "vscode"
CONTENT_TYPES = {
    ".js": "application/javascript",
    ".json": "application/json",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".vsixmanifest": "text/xml",
}


def run(*command):
    env = {**os.environ, "npm_config_update_notifier": "false"}
    try:
        done = subprocess.run(command, cwd=SOURCE, env=env, capture_output=True, text=True, check=False)
    except OSError as error:
        raise PackagingError(f"cannot start {command[0]}: {error.strerror}", "install Node.js 20 or newer") from error
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-3:])
        raise PackagingError(f"`{' '.join(command)}` failed: {last}", "npm needs its registry the first time")


def bundle():
    """The extension as one file, and the licenses of the packages in it."""
    if not (SOURCE / "node_modules/.bin/esbuild").exists():
        run("npm", "ci", "--no-audit", "--no-fund", "--include=dev")
    with tempfile.TemporaryDirectory() as folder:
        code, inputs = pathlib.Path(folder, "extension.js"), pathlib.Path(folder, "inputs.json")
        build = json.loads((SOURCE / "package.json").read_bytes())["scripts"]["build"]
        words = [word for word in build.split()[1:] if not word.startswith("--outfile=")]
        run("node_modules/.bin/esbuild", *words, f"--outfile={code}", f"--metafile={inputs}")
        names = set()
        for path in json.loads(inputs.read_bytes())["inputs"]:
            if found := re.match(r"node_modules/((?:@[^/]+/)?[^/]+)/", path):
                names.add(found[1])
        return code.read_bytes(), licenses(sorted(names))


def licenses(names):
    parts = ["The extension contains these works of other people, under these licenses.\n"]
    for name in names:
        folder = SOURCE / "node_modules" / name
        version = json.loads((folder / "package.json").read_bytes())["version"]
        texts = [path.read_text() for path in sorted(folder.iterdir()) if re.match(r"(?i)licen[sc]e", path.name)]
        if not texts:
            raise PackagingError(f"the npm package {name} has no license text", "add it to packaging/vsix.py")
        parts.append(f"{'=' * 80}\n{name} {version}\n{'-' * 80}\n" + "\n".join(text.strip() for text in texts) + "\n")
    return "\n".join(parts).encode()


def extension_manifest(package, target):
    """The file that VS Code and its marketplace read first."""
    platform = f" TargetPlatform={quoteattr(target)}" if target else ""
    repository = package["repository"]["url"]
    properties = {
        "Microsoft.VisualStudio.Code.Engine": package["engines"]["vscode"],
        "Microsoft.VisualStudio.Code.ExtensionKind": "workspace",
        "Microsoft.VisualStudio.Code.ExecutesCode": "true",
        "Microsoft.VisualStudio.Services.Links.Source": repository,
        "Microsoft.VisualStudio.Services.Links.Support": f"{repository}/issues",
        "Microsoft.VisualStudio.Services.GitHubFlavoredMarkdown": "true",
    }
    lines = "\n".join(
        f"      <Property Id={quoteattr(key)} Value={quoteattr(value)}/>" for key, value in properties.items()
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={quoteattr(package["name"])} Version={quoteattr(package["version"])} \
Publisher={quoteattr(package["publisher"])}{platform}/>
    <DisplayName>{escape(package["displayName"])}</DisplayName>
    <Description xml:space="preserve">{escape(package["description"])}</Description>
    <Tags>{escape(",".join(package["keywords"]))}</Tags>
    <Categories>{escape(",".join(package["categories"]))}</Categories>
    <GalleryFlags>Public</GalleryFlags>
    <Properties>
{lines}
    </Properties>
    <License>extension/LICENSE.txt</License>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code"/>
  </Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
""".encode()


def content_types():
    types = "".join(
        f'<Default Extension="{extension}" ContentType="{kind}"/>' for extension, kind in CONTENT_TYPES.items()
    )
    namespace = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{namespace}">{types}</Types>\n'.encode()


def write_vsix(out_dir, binary=None):
    """Write the package and return its path."""
    package = json.loads((SOURCE / "package.json").read_bytes())
    if package["version"] != manifest()["version"]:
        raise PackagingError(
            f"editors/vscode/package.json has the version {package['version']}, Cargo.toml {manifest()['version']}",
            "change one of them",
        )
    platform = read_binary(binary).platform if binary else None
    target = f"{platform.npm_os}-{platform.npm_cpu}" if platform else None
    code, third_party = bundle()
    files = {
        "[Content_Types].xml": content_types(),
        "extension.vsixmanifest": extension_manifest(package, target),
        "extension/LICENSE.txt": (ROOT / "LICENSE-MIT").read_bytes(),
        "extension/THIRD-PARTY-NOTICES.txt": third_party,
        "extension/dist/extension.js": code,
    }
    for name in ("README.md", "language-configuration.json", "package.json", "skill.tmLanguage.json"):
        files[f"extension/{name}"] = (SOURCE / name).read_bytes()
    if binary:
        from notices import notices

        files["extension/bin/savoir"] = pathlib.Path(binary).read_bytes()
        files["extension/bin/THIRD-PARTY-NOTICES.txt"] = notices().encode()

    stem = "-".join(filter(None, [package["name"], "vscode", package["version"], target]))
    path = pathlib.Path(out_dir) / f"{stem}.vsix"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, so that the permissions are read
            mode = 0o755 if name == "extension/bin/savoir" else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=9)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out_dir", help="folder for the package")
    parser.add_argument("--binary", help="built savoir to put into it; the package is then for its platform")
    args = parser.parse_args()
    print(write_vsix(args.out_dir, args.binary))


if __name__ == "__main__":
    main_with_hints(main)
