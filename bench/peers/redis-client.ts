import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { ReplyReader } from './redis-replies.ts';
import type { Reply } from './redis-replies.ts';

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

interface Script {
  sha: string;
  lua: string;
  numberOfKeys: number;
}

type Args = readonly unknown[];

/**
 * The Redis client that BullMQ gets where `ioredis` is not installed: the commands that a
 * queue and a worker use, everything of one turn of the event loop in one write.
 */
export class RedisClient extends EventEmitter {
  readonly isCluster = false;
  readonly options: { host: string; port: number };
  status = 'wait';
  readonly #scripts = new Map<string, Script>();
  readonly #loaded = new Set<string>();
  readonly #waiting: Waiting[] = [];
  #outgoing: (string | Buffer)[] = [];
  #socket: Socket | undefined;

  constructor(port: number) {
    super();
    this.options = { host: '127.0.0.1', port };
  }

  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      const reader = new ReplyReader();
      const socket = connect(this.options.port, this.options.host);
      this.#socket = socket;
      socket.setNoDelay(true);
      socket.once('connect', () => {
        this.status = 'ready';
        this.emit('ready');
        resolve();
      });
      socket.on('data', (bytes) => {
        for (const reply of reader.read(bytes)) {
          const waiting = this.#waiting.shift();
          if (reply instanceof Error) waiting?.reject(reply);
          else waiting?.resolve(reply);
        }
      });
      socket.on('error', (error) => {
        reject(error);
        if (this.status !== 'end') this.emit('error', error);
      });
      socket.on('close', () => {
        this.status = 'end';
        for (const { reject: fail } of this.#waiting.splice(0)) fail(new Error('Connection is closed.'));
        this.emit('close');
        this.emit('end');
      });
    });
  }

  disconnect(): void {
    this.status = 'end';
    this.#socket?.destroy();
  }

  async quit(): Promise<string> {
    this.status = 'end';
    this.#socket?.end();
    return 'OK';
  }

  duplicate(): RedisClient {
    const other = new RedisClient(this.options.port);
    for (const [name, { lua, numberOfKeys }] of this.#scripts) other.defineCommand(name, { lua, numberOfKeys });
    return other;
  }

  send<T = Reply>(...args: Args): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: resolve as Waiting['resolve'], reject });
      this.#write(args);
    });
  }

  defineCommand(name: string, { lua, numberOfKeys }: { lua: string; numberOfKeys: number }): void {
    this.#scripts.set(name, { sha: createHash('sha1').update(lua).digest('hex'), lua, numberOfKeys });
    // BullMQ looks for a member of this name to see whether the command is defined.
    Object.assign(this, { [name]: (...args: unknown[]) => this.runCommand(name, args) });
  }

  runCommand(name: string, args: Args): Promise<Reply> {
    return this.send(...this.scriptCall(name, args));
  }

  /** The call of a script; the first on this connection has the script sent ahead of it. */
  scriptCall(name: string, args: Args): unknown[] {
    const script = this.#scripts.get(name);
    if (script === undefined) throw new Error(`unknown command ${name}`);
    if (!this.#loaded.has(script.sha)) {
      this.#loaded.add(script.sha);
      this.send('SCRIPT', 'LOAD', script.lua).catch((error: unknown) => {
        if (this.status !== 'end') this.emit('error', error);
      });
    }
    const given = args.length === 1 && Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
    return ['EVALSHA', script.sha, script.numberOfKeys, ...given.flat()];
  }

  multi(): RedisTransaction {
    return new RedisTransaction(this, true);
  }

  pipeline(): RedisTransaction {
    return new RedisTransaction(this, false);
  }

  hgetall(key: string): Promise<Record<string, string>> {
    return this.send<string[]>('HGETALL', key).then(pairs);
  }

  hget(key: string, field: string): Promise<string | null> {
    return this.send('HGET', key, field);
  }

  hmget(key: string, ...fields: string[]): Promise<(string | null)[]> {
    return this.send('HMGET', key, ...fields);
  }

  hset(key: string, data: Record<string, string | number>): Promise<number> {
    return this.send('HSET', key, ...Object.entries(data).flat());
  }

  del(...keys: string[]): Promise<number> {
    return this.send('DEL', ...keys);
  }

  llen(key: string): Promise<number> {
    return this.send('LLEN', key);
  }

  xtrim(key: string, strategy: string, threshold: number, options?: { approximate?: boolean }): Promise<number> {
    return this.send('XTRIM', key, strategy, ...(options?.approximate === false ? [] : ['~']), threshold);
  }

  bzpopmin(key: string, timeout: number): Promise<[string, string, string] | null> {
    return this.send('BZPOPMIN', key, timeout);
  }

  info(): Promise<string> {
    return this.send('INFO');
  }

  clientSetName(name: string): Promise<string> {
    return this.send('CLIENT', 'SETNAME', name);
  }

  scanStream(): Readable {
    return Readable.from([]);
  }

  #write(args: Args): void {
    if (this.#outgoing.length === 0) setImmediate(() => this.#flush());
    let head = `*${args.length}\r\n`;
    for (const arg of args) {
      if (Buffer.isBuffer(arg)) {
        this.#outgoing.push(`${head}$${arg.length}\r\n`, arg);
        head = '\r\n';
      } else {
        const text = arg === null || arg === undefined ? '' : String(arg);
        head += `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
      }
    }
    this.#outgoing.push(head);
  }

  #flush(): void {
    const pieces = this.#outgoing;
    this.#outgoing = [];
    this.#socket?.write(Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece))));
  }
}

/** Commands that go out together; as a transaction they also happen together. */
export class RedisTransaction {
  readonly #client: RedisClient;
  readonly #atomic: boolean;
  readonly #commands: unknown[][] = [];

  constructor(client: RedisClient, atomic: boolean) {
    this.#client = client;
    this.#atomic = atomic;
  }

  runCommand(name: string, args: Args): this {
    return this.#add(this.#client.scriptCall(name, args));
  }

  hset(key: string, data: Record<string, string | number>): this {
    return this.#add(['HSET', key, ...Object.entries(data).flat()]);
  }

  del(...keys: string[]): this {
    return this.#add(['DEL', ...keys]);
  }

  async exec(): Promise<[Error | null, Reply][]> {
    if (!this.#atomic) return (await Promise.allSettled(this.#commands.map((command) => this.#client.send(...command)))).map(settled);
    void this.#client.send('MULTI');
    const queued = this.#commands.map((command) => this.#client.send(...command));
    const [replies] = await Promise.all([this.#client.send<Reply[]>('EXEC'), ...queued]);
    return replies.map((reply) => (reply instanceof Error ? [reply, null] : [null, reply]));
  }

  #add(command: unknown[]): this {
    this.#commands.push(command);
    return this;
  }
}

function settled(outcome: PromiseSettledResult<Reply>): [Error | null, Reply] {
  return outcome.status === 'fulfilled' ? [null, outcome.value] : [outcome.reason as Error, null];
}

function pairs(list: string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let index = 0; index < list.length; index += 2) found[list[index] ?? ''] = list[index + 1] ?? '';
  return found;
}
