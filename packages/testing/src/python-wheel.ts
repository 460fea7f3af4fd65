import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

const SCRIPT = `
import sys, zipfile
folder, name, version, code, program = sys.argv[1:]
info = f"{name}-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{name}.py", code)
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    if program:
        script = zipfile.ZipInfo(f"{name}-{version}.data/scripts/{name}")
        script.external_attr = 0o100755 << 16
        wheel.writestr(script, "#!python\\n" + program)
    wheel.writestr(f"{info}/RECORD", f"{name}.py,,\\n{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n")
`;

/**
 * Writes a Python package of one module that can be installed without a network, and with it a program of its
 * name, if one is given.
 */
export function writeWheel(folder: string, name: string, version: string, code: string, program = ''): void {
  mkdirSync(folder, { recursive: true });
  execFileSync('python3', ['-c', SCRIPT, folder, name, version, code, program]);
}
