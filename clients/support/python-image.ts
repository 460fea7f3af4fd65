import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importImage } from '../../packages/testing/src/docker-test-image.mjs';
import { pythonEnvironment } from './python-environment.mjs';

/** Where Python itself lies, apart from what the environment adds. */
const WHERE =
  'import json, sys, sysconfig; print(json.dumps([sysconfig.get_path("stdlib"), getattr(sys, ' +
  '"_base_executable", sys.executable)]))';
const SHARED_OBJECTS = 'find "$@" -name "*.so*" -type f';

/**
 * A worker image as people build it for the hosted service: Python, the SDK, a handler, and a
 * command that starts it. Nothing can be pulled, so Python and its libraries are this machine's.
 */
export async function makePythonImage(
  host: string,
  name: string,
  environment: string,
  handler: string,
): Promise<{ name: string; remove(): Promise<void> }> {
  const home = pythonEnvironment(environment);
  const python = join(home, 'bin/python');
  const [stdlib = '', executable = ''] = JSON.parse(
    execFileSync(python, ['-c', WHERE], { encoding: 'utf8' }),
  ) as string[];
  const extra = mkdtempSync(join(tmpdir(), 'berth-python-image-'));
  for (const folder of ['app', 'etc', 'tmp'])
    mkdirSync(join(extra, folder), { mode: folder === 'tmp' ? 0o1777 : 0o755 });
  writeFileSync(join(extra, 'app/handler.py'), handler);
  writeFileSync(join(extra, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\n');
  writeFileSync(join(extra, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  const shared = execFileSync('sh', ['-c', SHARED_OBJECTS, 'sh', home, join(stdlib, 'lib-dynload')], {
    encoding: 'utf8',
  })
    .trim()
    .split('\n');
  const libraries = [...new Set([realpathSync(executable), '/bin/sh', ...shared].flatMap(librariesOf))];
  const paths = [...new Set([stdlib, executable, realpathSync(executable), home, '/bin/sh', ...libraries])];
  const archive = spawn(
    'tar',
    [
      '--create',
      '--dereference',
      '--absolute-names',
      `--exclude=${stdlib}/site-packages`,
      `--exclude=${stdlib}/dist-packages`,
      `--exclude=${stdlib}/test`,
      `--exclude=${home}/lib64`,
      ...paths,
      '--directory',
      extra,
      'app',
      'etc',
      'tmp',
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const changes = [`ENV PATH=${home}/bin:/bin`, 'WORKDIR /app', 'CMD ["python", "-u", "/app/handler.py"]'];
  const image = await importImage(host, name, archive.stdout, changes);
  rmSync(extra, { recursive: true });
  return image;
}

/** What the loader brings together for a program or a library. A wheel's own libraries lie in it already. */
function librariesOf(path: string): string[] {
  try {
    const list = execFileSync('ldd', [path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return [...list.matchAll(/(\/\S+) \(0x/g)].flatMap(([, library = '']) =>
      library === '' ? [] : [library],
    );
  } catch {
    return [];
  }
}
