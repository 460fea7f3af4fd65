import { execFileSync, spawn } from 'node:child_process';
import { importImage } from './docker-test-image.mjs';

export interface PythonImage {
  name: string;
  /** Where the interpreter is in it. */
  python: string;
  remove(): Promise<void>;
}

/** What an interpreter is made of: itself, its library, its packages, and the native modules of both. */
const PARTS = `
import json, os, sys, sysconfig
from pathlib import Path
library = sysconfig.get_paths()["stdlib"]
packages = sysconfig.get_paths()["purelib"]
python = os.path.realpath(sys.executable)
native = [str(path) for folder in (f"{library}/lib-dynload", packages) for path in Path(folder).rglob("*.so*")]
print(json.dumps({"library": library, "packages": packages, "python": python, "native": native}))
`;
const PACKAGES = '/site-packages';
const LEFT_OUT = ['__pycache__', 'test', 'tests', 'idlelib', 'ensurepip', 'config-*', 'pip', 'setuptools'];

/**
 * An image that holds a Python of this machine with its packages, and nothing else. The packages are found by
 * PYTHONPATH, as in many images. Nothing is fetched from anywhere.
 */
export async function createPythonImage(host: string, name: string, path: string): Promise<PythonImage> {
  const { library, packages, python, native } = JSON.parse(
    execFileSync(path, ['-c', PARTS], { encoding: 'utf8' }),
  ) as { library: string; packages: string; python: string; native: string[] };
  const libraries = execFileSync('sh', ['-c', 'ldd "$@" 2>/dev/null || true', 'sh', python, ...native], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const needed = new Set([...libraries.matchAll(/(\/\S+) \(0x/g)].map(([, library = '']) => library));
  const archive = spawn(
    'tar',
    [
      '--create',
      '--dereference',
      '--directory=/',
      `--transform=flags=r;s,^${packages.slice(1)},${PACKAGES.slice(1)},`,
      ...LEFT_OUT.map((pattern) => `--exclude=${pattern}`),
      // The packages of the interpreter itself are not those of the environment.
      `--exclude=${library.slice(1)}/site-packages`,
      ...[python, library, packages, '/etc/passwd', '/etc/nsswitch.conf', ...needed].map((file) =>
        file.slice(1),
      ),
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const changes = [`ENV PYTHONPATH=${PACKAGES}`, 'WORKDIR /work'];
  return { ...(await importImage(host, name, archive.stdout, changes)), python };
}
