# SPDX-License-Identifier: Apache-2.0
"""Writes the NuGet package without NuGet: pack.py FILES VERSION OUT.nupkg

FILES is a folder laid out as the package is. A package is a zip (Open Packaging Conventions) with a
list of content types, a relation to its manifest, and the manifest itself. Same input, same bytes.
"""
import pathlib
import sys
import zipfile

NAME = "Waste"
DESCRIPTION = "Mixture-of-experts language models larger than memory, as a library."
EPOCH = (1980, 1, 1, 0, 0, 0)

NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>{name}</id>
    <version>{version}</version>
    <authors>The WASTE authors</authors>
    <license type="expression">Apache-2.0</license>
    <licenseUrl>https://licenses.nuget.org/Apache-2.0</licenseUrl>
    <readme>README.md</readme>
    <description>{description}</description>
    <dependencies>
      <group targetFramework=".NETStandard2.0">
        <dependency id="Microsoft.Bcl.AsyncInterfaces" version="8.0.0" />
      </group>
    </dependencies>
  </metadata>
</package>
"""

RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest"
                Target="/{name}.nuspec" Id="R1" />
</Relationships>
"""


def content_types(names):
    """Each extension that occurs, and the files that have none."""
    extensions = sorted({pathlib.PurePosixPath(name).suffix[1:] for name in names} - {""})
    entries = ['<Default Extension="rels" '
               'ContentType="application/vnd.openxmlformats-package.relationships+xml" />']
    entries += [f'<Default Extension="{extension}" ContentType="application/octet" />'
                for extension in extensions]
    entries += [f'<Override PartName="/{name}" ContentType="application/octet" />'
                for name in names if not pathlib.PurePosixPath(name).suffix]
    return ('<?xml version="1.0" encoding="utf-8"?>\n'
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\n  ' +
            "\n  ".join(entries) + "\n</Types>\n")


def write(archive, name, data):
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


def main(folder, version, target):
    root = pathlib.Path(folder)
    files = {path.relative_to(root).as_posix(): path.read_bytes()
             for path in sorted(root.rglob("*")) if path.is_file()}
    files[f"{NAME}.nuspec"] = NUSPEC.format(name=NAME, version=version, description=DESCRIPTION)
    with zipfile.ZipFile(target, "w") as archive:
        write(archive, "[Content_Types].xml", content_types(files))
        write(archive, "_rels/.rels", RELATIONS.format(name=NAME))
        for name, data in files.items():
            write(archive, name, data)


if __name__ == "__main__":
    main(*sys.argv[1:])
