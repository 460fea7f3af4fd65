import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { FileOwner } from '../../support/file-owner.ts';
import { removeTree } from '../../support/remove-tree.ts';
import type { InstanceMount } from '../instance.ts';
import { type ProcessEntry, parseStat } from './process-table.ts';

const SAVED_FILE = 'instance.json';
/** Longer files are not read: an instance without isolation could have put them there. */
const MAX_STATE_BYTES = 1024 * 1024;

const STATE_FILE_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The state that is saved before an instance starts. The environment is left out: it may hold secrets. */
export interface SavedInstance {
  id: string;
  /** New for each start of the same id. */
  run: string;
  labels: Readonly<Record<string, string>>;
  image: string;
  bootId: string;
  startedAt: number;
  /** Declared port and the host port it is mapped to. */
  ports: readonly { port: number; hostPort: number }[];
  gpus: { typeId: string; indexes: readonly number[] } | null;
  /** Mount paths outside the instance's folder, created as symbolic links. */
  links: readonly string[];
  cgroup: string | null;
  /** The folder of its Python environment, which stays as long as the instance. */
  python?: string;
  /** The account's user; missing if it runs as the user that runs Berth. */
  user?: FileOwner;
  /** Whether it has namespaces of its own. */
  namespaces?: true;
  /** Folders of Berth that are mounted in it. */
  mounts?: readonly InstanceMount[];
  /** How much it may write to its own folder; missing if that is not limited. */
  diskInGb?: number;
}

/** The two processes of an instance whose ids are recorded. */
export interface StartedProcesses {
  supervisor: ProcessEntry;
  /** The instance's first process, the session leader. */
  child: ProcessEntry;
}

/**
 * The folder of one instance. `root` is the working folder and stands for the container disk; `tmp` holds
 * temporary files; `instance.json` is the state that Berth saves; the supervisor writes `started` and `exit`,
 * and its output writer the files in `output`, as long as there is a `pipe`. An account's user owns `root` and
 * `tmp` and cannot change anything beside them: of the pipe it has an open descriptor. `view` and `cover` hold
 * mount points.
 */
export class InstanceFolder {
  readonly path: string;
  readonly root: string;
  readonly tmp: string;
  readonly output: string;
  readonly #pipe: string;
  readonly view: string;
  readonly cover: string;
  readonly cgroupCover: string;
  readonly fstab: string;
  readonly userNames: string;

  constructor(path: string) {
    this.path = path;
    this.root = join(path, 'root');
    this.tmp = join(path, 'tmp');
    this.output = join(path, 'output');
    this.#pipe = join(path, 'pipe');
    this.view = join(path, 'view');
    this.cover = join(path, 'cover');
    this.cgroupCover = join(path, 'cgroup-cover');
    this.fstab = join(path, 'fstab');
    this.userNames = join(path, 'names');
  }

  /** The folder must not exist yet. Synchronous because every start waits for it. */
  create(user?: FileOwner): void {
    mkdirSync(this.root, { recursive: true, mode: 0o700 });
    mkdirSync(this.tmp, { mode: 0o700 });
    mkdirSync(this.output, { mode: 0o700 });
    if (user === undefined) return;
    // `root` is given to the user last: other processes of the account could change what Berth puts there.
    chownSync(this.tmp, user.uid, user.gid);
    // Lets the user enter the two folders, not list what is beside them.
    chmodSync(this.path, 0o711);
  }

  async clear(): Promise<void> {
    await Promise.all([removeTree(this.root), removeTree(this.tmp)]);
  }

  /** No fsync: the file has to survive a crash of Berth, not of the machine, which ends the instance too. */
  save(instance: SavedInstance): void {
    const file = join(this.path, SAVED_FILE);
    writeFileSync(`${file}.new`, JSON.stringify(instance), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }

  /** Undefined if the file is missing or incomplete. */
  readSaved(): SavedInstance | undefined {
    const text = this.#read(SAVED_FILE);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as SavedInstance;
    } catch {
      return undefined;
    }
  }

  readStarted(): StartedProcesses | undefined {
    const [supervisor, child, rest] = (this.#read('started') ?? '').split('\n');
    if (supervisor === undefined || child === undefined || rest === undefined) return undefined;
    return { supervisor: parseStat(supervisor), child: parseStat(child) };
  }

  /** Exit code and time; undefined if the supervisor died before it wrote them. */
  readExit(): { exitCode: number; at: number } | undefined {
    const text = this.#read('exit') ?? '';
    return /^\d{1,3}\n$/.test(text)
      ? { exitCode: Number(text), at: Math.round(lstatSync(join(this.path, 'exit')).mtimeMs) }
      : undefined;
  }

  /** Whether there is output that is not in the log yet. */
  hasOutput(): boolean {
    return lstatSync(this.output, { throwIfNoEntry: false }) !== undefined;
  }

  /** Whether the output writer may still write: a process that left the instance may have the pipe open. */
  isOutputOpen(): boolean {
    return lstatSync(this.#pipe, { throwIfNoEntry: false })?.isFIFO() ?? false;
  }

  deleteOutput(): void {
    rmSync(this.output, { recursive: true, force: true });
  }

  #read(name: string): string | undefined {
    let file: number;
    try {
      file = openSync(join(this.path, name), STATE_FILE_FLAGS);
    } catch (error) {
      if (['ENOENT', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
      throw error;
    }
    try {
      const found = fstatSync(file);
      return found.isFile() && found.size <= MAX_STATE_BYTES ? readFileSync(file, 'utf8') : undefined;
    } finally {
      closeSync(file);
    }
  }
}
