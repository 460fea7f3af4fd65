import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree } from '../../support/remove-tree.ts';
import { type ProcessEntry, parseStat } from './process-table.ts';

const SAVED_FILE = 'instance.json';

/** What is written down of an instance before it starts. The environment is not: it may hold secrets. */
export interface SavedInstance {
  id: string;
  /** Differs from one start of the same id to the next. */
  run: string;
  labels: Readonly<Record<string, string>>;
  image: string;
  bootId: string;
  startedAt: number;
  /** Declared number to number on this machine. */
  ports: readonly { port: number; hostPort: number }[];
  gpus: { typeId: string; indexes: readonly number[] } | null;
  /** Mount paths outside its folder that are links now. */
  links: readonly string[];
  cgroup: string | null;
}

/** The two processes of an instance that are known by number. */
export interface StartedProcesses {
  supervisor: ProcessEntry;
  /** The instance's first process, the leader of its session. */
  child: ProcessEntry;
}

/**
 * The folder of one instance:
 * `root` is its working folder, and stands for the container disk; `tmp` is for temporary files;
 * `instance.json` is what Berth knows; `started`, `output` and `exit` are the supervisor's.
 */
export class InstanceFolder {
  readonly path: string;
  readonly root: string;
  readonly tmp: string;
  readonly output: string;

  constructor(path: string) {
    this.path = path;
    this.root = join(path, 'root');
    this.tmp = join(path, 'tmp');
    this.output = join(path, 'output');
  }

  /** Where nothing is, in one go: every start waits for this. */
  create(): void {
    mkdirSync(this.root, { recursive: true, mode: 0o700 });
    mkdirSync(this.tmp, { mode: 0o700 });
  }

  async clear(): Promise<void> {
    await Promise.all([removeTree(this.root), removeTree(this.tmp)]);
  }

  /** Not brought to the disk at once: it has to outlive Berth, and with the machine the instance ends too. */
  save(instance: SavedInstance): void {
    const file = join(this.path, SAVED_FILE);
    writeFileSync(`${file}.new`, JSON.stringify(instance), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }

  /** Undefined where nothing, or nothing whole, was written. */
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

  /** How and when it ended; undefined where the supervisor did not live to write it. */
  readExit(): { exitCode: number; at: number } | undefined {
    const text = this.#read('exit') ?? '';
    return text.endsWith('\n')
      ? { exitCode: Number(text), at: Math.round(statSync(join(this.path, 'exit')).mtimeMs) }
      : undefined;
  }

  /** There is output that is not in the log yet. */
  hasOutput(): boolean {
    return statSync(this.output, { throwIfNoEntry: false }) !== undefined;
  }

  deleteOutput(): void {
    rmSync(this.output, { force: true });
  }

  #read(name: string): string | undefined {
    try {
      return readFileSync(join(this.path, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }
}
