import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openStore } from '../packages/cloud/src/store/open-store.ts';
import { Sealer } from '../packages/cloud/src/support/crypto.ts';
import { parseMasterKey } from '../packages/cloud/src/support/master-key.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { seededNumbers } from '../packages/testing/src/property-testing.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';

/**
 * How often the server is killed while it writes. A server of its own in front of PostgreSQL has little to
 * lose, so fewer will do.
 */
const KILLS = {
  sqlite: repeats({ usually: 6, long: 50 }),
  postgres: repeats({ usually: 3, long: 10 }),
};
const WRITERS = 6;
const MOST_WRITES = 50;

/** One thing that a writer asked for, and what it was told. */
interface Write {
  kind: 'template' | 'volume' | 'secret';
  name: string;
  /** What must be seen of it. */
  fields: Record<string, unknown>;
  /** The id in the answer; undefined where none came. */
  id?: string;
  /** It was to be deleted: the answer came, or it did not. */
  removal?: 'acknowledged' | 'asked';
}

const PATHS = { template: '/v2/templates', volume: '/v2/network-volumes', secret: '/v2/account/secrets' };
const filler = 'x'.repeat(2000);

function bodyOf({ kind, name, fields }: Write): object {
  switch (kind) {
    case 'template':
      return { name, image: 'python:3.12', ...fields };
    case 'volume':
      return { name, dataCenter: 'LOCAL-1', ...fields };
    case 'secret':
      return { name, value: secretValue(name), ...fields };
  }
}

const secretValue = (name: string): string => `${name} ${filler}`;

for (const kind of DATABASES) {
  describe(`power cuts, on ${kind}`, () => {
    const random = seededNumbers();
    const writes: Write[] = [];
    let database: TestDatabase;
    let server: ServerProcess;
    before(async () => {
      database = await createTestDatabase(kind);
    });
    after(() => database.drop());

    test(`${KILLS[kind]} times amid writing: what was acknowledged is there, the rest is whole or absent`, async () => {
      for (let round = 0; round < KILLS[kind]; round += 1) {
        server = await startServerProcess(database, { BERTH_RATE_LIMITS: 'off' });
        const lists = await nothingLost(server.client(), writes);
        if (round % 5 === 4) await sameEverywhere(server.client(), lists);
        await writeUntilKilled(round);
      }
      server = await startServerProcess(database, { BERTH_RATE_LIMITS: 'off' });
      await sameEverywhere(server.client(), await nothingLost(server.client(), writes));
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
      assert.equal(await server.stop(), 0);
      const acknowledged = writes.filter(({ id }) => id !== undefined).length;
      const lost = writes.length - acknowledged;
      process.stdout.write(`${kind}: ${acknowledged} writes acknowledged, ${lost} cut off\n`);
      assert.ok(acknowledged > KILLS[kind] && lost > KILLS[kind]);
    });

    test('and every secret that was acknowledged opens', async () => {
      const sealer = new Sealer(
        parseMasterKey(readFileSync(join(database.data, 'master.key'), 'utf8').trim()),
      );
      const onError = (error: Error): never => {
        throw error;
      };
      const store = await openStore({
        database: database.url,
        data: database.data,
        poolSize: 1,
        sealer,
        onError,
      });
      const names = writes
        .filter((write) => write.kind === 'secret' && write.id !== undefined && write.removal === undefined)
        .map(({ name }) => name);
      const values = await store.secrets.findValues('root', names);
      await store.close();
      assert.deepEqual([...values.keys()].sort(), [...names].sort());
      for (const [name, value] of values) assert.equal(value, secretValue(name));
    });

    /**
     * Writers write as fast as they can until one of them pulls the plug, after a number of acknowledgements
     * that the seed knows.
     */
    async function writeUntilKilled(round: number): Promise<void> {
      let left = 1 + Math.floor(random() * MOST_WRITES);
      let killed: Promise<void> | undefined;
      const client = server.client();
      const acknowledged = (): void => {
        left -= 1;
        if (left === 0) killed = server.kill();
      };
      const writer = async (index: number): Promise<void> => {
        for (let turn = 0; killed === undefined; turn += 1) {
          const write = newWrite(`r${round}-w${index}-${turn}`, random());
          writes.push(write);
          const made = await unlessCut(client.call<{ id: string }>('POST', PATHS[write.kind], bodyOf(write)));
          if (made === undefined) return;
          assert.equal(made.status, 201, made.text);
          write.id = made.body.id;
          acknowledged();
          if (random() > 0.2 || killed !== undefined) continue;
          write.removal = 'asked';
          const removed = await unlessCut(client.call('DELETE', `${PATHS[write.kind]}/${write.id}`));
          if (removed === undefined) return;
          assert.equal(removed.status, 204, removed.text);
          write.removal = 'acknowledged';
          acknowledged();
        }
      };
      await Promise.all(Array.from({ length: WRITERS }, (_, index) => writer(index)));
      await killed;
    }
  });
}

function newWrite(name: string, chance: number): Write {
  if (chance < 0.4)
    return {
      kind: 'template',
      name,
      fields: { env: { NAME: name, FILLER: filler }, args: `run ${name}`, ports: ['80/http'] },
    };
  return chance < 0.7
    ? { kind: 'volume', name, fields: { size: 10 + name.length } }
    : { kind: 'secret', name, fields: { description: `of ${name}` } };
}

/** The answer, or nothing where the connection was cut. Any other failure is a failure. */
async function unlessCut<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    assert.ok(error instanceof TypeError, String(error));
    return undefined;
  }
}

interface Listed {
  id: string;
  name: string;
  [field: string]: unknown;
}

type Lists = Record<Write['kind'], Listed[]>;

/** Compares what was asked for with what is there. */
async function nothingLost(client: ApiClient, writes: readonly Write[]): Promise<Lists> {
  const lists: Lists = {
    template: await allTemplates(client),
    volume: (await client.call<{ networkVolumes: Listed[] }>('GET', '/v2/network-volumes')).body
      .networkVolumes,
    secret: (await client.call<{ secrets: Listed[] }>('GET', '/v2/account/secrets')).body.secrets,
  };
  const found = new Map(
    Object.entries(lists).flatMap(([kind, items]) =>
      items.map((item) => [`${kind} ${item.name}`, item] as const),
    ),
  );
  for (const write of writes) {
    const item = found.get(`${write.kind} ${write.name}`);
    const where =
      `${write.kind} ${write.name}, ` +
      `${write.id === undefined ? 'not acknowledged' : 'acknowledged'}${write.removal === undefined ? '' : `, removal ${write.removal}`}`;
    if (write.removal === 'acknowledged') assert.equal(item, undefined, where);
    else if (write.id !== undefined && write.removal === undefined) assert.equal(item?.id, write.id, where);
    if (item !== undefined) assert.partialDeepStrictEqual(item, write.fields, where);
  }
  const asked = new Set(writes.map((write) => `${write.kind} ${write.name}`));
  assert.deepEqual(
    [...found.keys()].filter((key) => !asked.has(key)),
    [],
  );
  assert.equal(found.size, Object.values(lists).flat().length, 'nothing is there twice');
  return lists;
}

/** The other interfaces and the audit log tell the same. */
async function sameEverywhere(client: ApiClient, lists: Lists): Promise<void> {
  const ids = (items: Listed[]): string[] => items.map(({ id }) => id);
  assert.deepEqual(ids((await client.call<Listed[]>('GET', '/v1/templates')).body), ids(lists.template));
  assert.deepEqual(ids((await client.call<Listed[]>('GET', '/v1/networkvolumes')).body), ids(lists.volume));
  const { data } = (
    await client.graphql<{ myself: Record<string, Listed[]> }>(
      '{ myself { podTemplates { id } networkVolumes { id } secrets { id } } }',
    )
  ).body;
  assert.deepEqual(
    [data?.myself['podTemplates'], data?.myself['networkVolumes'], data?.myself['secrets']].map((items) =>
      ids(items ?? []),
    ),
    [lists.template, lists.volume, lists.secret].map(ids),
  );
  await audited(client, new Set(Object.values(lists).flatMap(ids)));
}

/**
 * A change and its line in the audit log are written together: each thing that is there was created once, and
 * not deleted.
 */
async function audited(client: ApiClient, there: ReadonlySet<string>): Promise<void> {
  const state = new Map<string, string[]>();
  for (let before = ''; ; ) {
    const { entries } = (
      await client.call<{ entries: { id: number; action: string; resource: string; resourceId: string }[] }>(
        'GET',
        `/v2/account/audit-log?limit=1000${before}`,
      )
    ).body;
    for (const { action, resource, resourceId } of entries)
      if (resource !== 'account') state.set(resourceId, [action, ...(state.get(resourceId) ?? [])]);
    const last = entries.at(-1);
    if (last === undefined) break;
    before = `&before=${last.id}`;
  }
  for (const id of there) assert.deepEqual(state.get(id), ['create'], id);
  for (const [id, actions] of state)
    assert.deepEqual(actions, there.has(id) ? ['create'] : ['create', 'delete'], id);
}

async function allTemplates(client: ApiClient): Promise<Listed[]> {
  const all: Listed[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body }: { body: { templates: Listed[]; pagination: { nextCursor: string | null } } } =
      await client.call('GET', `/v2/templates?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`);
    all.push(...body.templates);
    cursor = body.pagination.nextCursor;
  }
  return all;
}
