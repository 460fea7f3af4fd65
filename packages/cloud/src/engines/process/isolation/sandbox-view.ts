import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** Folders of the machine that hold programs and their configuration. Instances see them read-only. */
const SYSTEM_FOLDERS = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/etc',
  '/opt',
  '/nix',
];
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty'];
const GPU_DEVICES = /^(nvidia.*|dri|kfd)$/;
/** None is absolute: while mounts are made, such a link leads into the machine. */
const DEVICE_LINKS = {
  fd: '../proc/self/fd',
  stdin: 'fd/0',
  stdout: 'fd/1',
  stderr: 'fd/2',
  ptmx: 'pts/ptmx',
};

interface ViewMount {
  /** Where the instance sees it. */
  path: string;
  source: string;
  type: string;
  options: string;
  /** Whether Berth may create mount points in the source. */
  canCreate: boolean;
  /** Whether the account's processes may change the source at any time. */
  changeable?: boolean;
}

/**
 * The files that an instance sees: a folder with empty mount points, and the list of what is mounted on them.
 * The mounts themselves are made in the instance's own mount namespace, so nothing of them shows outside it.
 */
export class SandboxView {
  readonly #folder: string;
  readonly #mounts: ViewMount[] = [];

  /** `folder` must be empty and belong to Berth. */
  constructor(folder: string) {
    this.#folder = folder;
    this.#mounts.push({ path: '/', source: folder, type: 'none', options: 'bind', canCreate: true });
  }

  /**
   * The system's programs, devices and file systems of its own. `tmp` becomes /tmp. /dev/shm, which is memory,
   * has `shmBytes`, or half of the machine's memory.
   */
  addSystem({ tmp, gpus, shmBytes = 0 }: { tmp: string; gpus: boolean; shmBytes?: number }): void {
    for (const path of SYSTEM_FOLDERS) this.#addSystemFolder(path);
    this.#add('/proc', { source: 'proc', type: 'proc', options: 'nosuid,nodev,noexec' });
    this.bind('/sys', '/sys', { readOnly: true });
    for (const name of DEVICES) this.#bindFile(`/dev/${name}`, `/dev/${name}`);
    if (gpus) this.#addGpuDevices();
    this.#add('/dev/pts', {
      source: 'devpts',
      type: 'devpts',
      options: 'newinstance,ptmxmode=0666,mode=0620,nosuid,noexec',
    });
    const size = shmBytes > 0 ? `,size=${Math.round(shmBytes)}` : '';
    this.#add('/dev/shm', { source: 'tmpfs', type: 'tmpfs', options: `mode=1777,nosuid,nodev${size}` });
    this.#add('/dev/mqueue', { source: 'mqueue', type: 'mqueue', options: 'nosuid,nodev,noexec' });
    for (const [name, target] of Object.entries(DEVICE_LINKS)) this.#link(`/dev/${name}`, target);
    mkdirSync(join(this.#folder, 'run'), { recursive: true });
    this.#link('/var/run', '../run');
    this.bind(tmp, '/tmp', { canCreate: true });
    this.bind(tmp, '/var/tmp', { canCreate: true });
    this.#addResolverFolder();
  }

  /** Names for the instance's user, which many programs look up. */
  addUserNames(files: { passwd: string; group: string }): void {
    this.#bindFile(files.passwd, '/etc/passwd');
    this.#bindFile(files.group, '/etc/group');
  }

  /**
   * Shows a folder of the machine at a path. Returns false if the path cannot be created: it is in a folder
   * of the machine that has no such entry.
   */
  bind(source: string, path: string, { readOnly = false, canCreate = false } = {}): boolean {
    if (!this.#createMountPoint(path, 'folder')) return false;
    this.#mounts.push({
      path: resolve(path),
      source,
      type: 'none',
      options: readOnly ? 'rbind,ro,nosuid' : 'rbind,nosuid,nodev',
      canCreate,
      changeable: !readOnly && !canCreate,
    });
    return true;
  }

  /** Shows a folder at its own path, unless it is visible already. */
  bindReadOnly(path: string): void {
    if (!this.isVisible(path)) this.bind(path, path, { readOnly: true });
  }

  /** Hides a folder of the machine that is visible as a part of a larger one. `empty` is Berth's own. */
  hide(path: string, empty: string): void {
    if (this.isVisible(path)) this.bind(empty, path, { canCreate: true });
  }

  /** Whether the machine's own content of this path is visible. */
  isVisible(path: string): boolean {
    const mount = this.#mountOf(path);
    return mount.type === 'none' && !mount.canCreate && this.#existsIn(mount, path);
  }

  /**
   * Whether an account may have a mount at this path: nothing is there, and all on the way is Berth's own. What
   * the account can change may become a link at any time, and root mounts by path.
   */
  isFree(path: string): boolean {
    const wanted = resolve(path);
    const mount = this.#mountOf(wanted);
    if (!mount.canCreate || mount.path === wanted) return false;
    let at = mount.source;
    for (const name of relative(mount.path, wanted).split('/')) {
      at = join(at, name);
      const found = lstatSync(at, { throwIfNoEntry: false });
      if (found === undefined) return true;
      if (!found.isDirectory()) return false;
    }
    return false;
  }

  /** Whether the account's processes may change what is on the way to this path. */
  isChangeable(path: string): boolean {
    return this.#mountOf(path).changeable === true;
  }

  /** The mounts in the format of fstab(5), with the paths that they have before the root is changed. */
  toFstab(): string {
    return this.#mounts
      .map(({ path, source, type, options }) =>
        [escape(source), escape(join(this.#folder, path)), type, options, '0', '0'].join(' '),
      )
      .map((line) => `${line}\n`)
      .join('');
  }

  #addSystemFolder(path: string): void {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isSymbolicLink() === true) this.#link(path, readlinkSync(path));
    else if (found?.isDirectory() === true) this.bind(path, path, { readOnly: true });
  }

  #addGpuDevices(): void {
    for (const name of readdirSync('/dev').filter((device) => GPU_DEVICES.test(device))) {
      const path = `/dev/${name}`;
      if (!statSync(path).isDirectory()) this.#bindFile(path, path);
      else if (this.#createMountPoint(path, 'folder'))
        // Not with nodev, as other folders.
        this.#mounts.push({ path, source: path, type: 'none', options: 'rbind,nosuid', canCreate: false });
    }
  }

  /** /etc/resolv.conf is often a link into /run. */
  #addResolverFolder(): void {
    const file = '/etc/resolv.conf';
    if (!existsSync(file)) return;
    const folder = dirname(realpathSync(file));
    if (folder.startsWith('/run/')) this.bind(folder, folder, { readOnly: true });
  }

  #bindFile(source: string, path: string): void {
    if (existsSync(source) && this.#createMountPoint(path, 'file'))
      this.#add(path, { source, type: 'none', options: 'bind,nosuid' }, false);
  }

  #add(path: string, mount: Pick<ViewMount, 'source' | 'type' | 'options'>, create = true): void {
    if (create) this.#createMountPoint(path, 'folder');
    this.#mounts.push({ path, canCreate: false, ...mount });
  }

  #link(path: string, target: string): void {
    const at = join(this.#folder, path);
    mkdirSync(dirname(at), { recursive: true });
    symlinkSync(target, at);
  }

  #createMountPoint(path: string, kind: 'folder' | 'file'): boolean {
    const mount = this.#mountOf(path);
    if (!mount.canCreate) return this.#existsIn(mount, path);
    const at = join(mount.source, relative(mount.path, resolve(path)));
    mkdirSync(kind === 'folder' ? at : dirname(at), { recursive: true, mode: 0o755 });
    if (kind === 'file' && !existsSync(at)) writeFileSync(at, '', { mode: 0o644 });
    return true;
  }

  #existsIn(mount: ViewMount, path: string): boolean {
    return mount.type === 'none' && existsSync(join(mount.source, relative(mount.path, resolve(path))));
  }

  /** The latest mount that holds the path. */
  #mountOf(path: string): ViewMount {
    const wanted = resolve(path);
    const found = this.#mounts.findLast(
      (mount) => mount.path === '/' || wanted === mount.path || wanted.startsWith(`${mount.path}/`),
    );
    return found as ViewMount;
  }
}

/** As getmntent(3) reads it. */
function escape(path: string): string {
  return path.replace(/[\s\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`);
}
