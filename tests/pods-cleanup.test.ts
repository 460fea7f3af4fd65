import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  containerLogLines,
  createRunningPod,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { BERTH_COMMAND } from '../packages/testing/src/berth-command.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const A40 = 'NVIDIA A40';
const ENV = { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: `1x ${A40}` };
/** Folders that their own user may not write to, as Go's cache of modules is, on both of its disks. */
const LEAVES_READ_ONLY =
  'for disk in . "$BERTH_ROOT/workspace"; do mkdir -p "$disk/mod" && touch "$disk/mod/x" && chmod 555 ' +
  '"$disk/mod"; done; echo up';
const GPU_AND_VOLUME = {
  gpu: { id: A40, count: 1 },
  mounts: { persistent: { size: 10, path: '/workspace' } },
};

const isRoot = process.getuid?.() === 0;
/** No mode of a folder keeps root out, so Berth runs as somebody else here. */
const user = isRoot ? 65534 : undefined;
const isReadable =
  user === undefined || spawnSync(BERTH_COMMAND, ['--version'], { uid: user, gid: user }).status === 0;

describe('what pods leave behind', {
  skip: !isReadable && 'NOT RUN: an ordinary user cannot read this clone',
}, () => {
  let place: TestDatabase;
  let server: ServerProcess;
  const start = (): Promise<ServerProcess> => startServerProcess(place, ENV, ['--port', '0'], user);
  before(async () => {
    place = await createTestDatabase('sqlite');
    if (user !== undefined) chownSync(place.data, user, user);
    server = await start();
  });
  after(async () => {
    await server?.stop();
    await place?.drop();
  });

  const up = async (commands: string): Promise<PodView> => {
    const made = await createRunningPod(server.client(), {
      ...GPU_AND_VOLUME,
      cmd: ['sh', '-c', `${commands}; exec sleep 1000`],
    });
    await waitFor('it has written', async () =>
      (await containerLogLines(server.client(), made.id)).includes('up'),
    );
    return made;
  };
  const terminate = async (id: string): Promise<void> => {
    assert.equal((await server.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
  };
  const left = (folder: 'instances' | 'pods'): string[] => readdirSync(join(place.data, folder));
  const nothingIsLeft = (): Promise<unknown> =>
    waitFor('nothing of it is left', async () => left('instances').length === 0 && left('pods').length === 0);

  test('a pod with folders that are read-only stops, starts and is terminated like any other', async () => {
    const { id } = await up(LEAVES_READ_ONLY);
    assert.equal((await podAction(server.client(), id, 'stop')).body.status, 'EXITED');
    assert.deepEqual(
      readdirSync(join(place.data, 'instances', id)).filter((name) => name === 'root' || name === 'tmp'),
      [],
    );
    assert.equal((await podAction(server.client(), id, 'start')).status, 200);
    await waitForPodStatus(server.client(), id, 'RUNNING');
    await terminate(id);
    await nothingIsLeft();
    await terminate((await up('echo up')).id);
  });

  test('one that ends by itself has ended', async () => {
    const { id } = (
      await createPod(server.client(), { ...GPU_AND_VOLUME, cmd: ['sh', '-c', LEAVES_READ_ONLY] })
    ).body;
    await waitForPodStatus(server.client(), id, 'EXITED');
    await terminate(id);
    await nothingIsLeft();
  });

  test("files that Berth cannot remove block neither a pod's end nor its GPU, are logged, and go when they can", {
    skip: !isRoot && 'NOT RUN: only root can leave something to another user',
  }, async () => {
    const { id } = await up('echo up');
    const theirs = [
      join(place.data, 'instances', id, 'root', 'theirs'),
      join(place.data, 'pods', id, 'theirs'),
    ];
    for (const folder of theirs) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'x'), '');
    }
    await terminate(id);
    await terminate((await up('echo up')).id);
    await waitFor(
      'the log tells of both',
      async () =>
        parseLogLines(server).filter(({ msg }) =>
          / could not be (cleared away|deleted); trying again$/.test(String(msg)),
        ).length === 2,
    );
    const [aside = ''] = left('instances');
    assert.match(aside, new RegExp(`^\\.removed-${id}-`));
    await waitFor(
      'the disk of the other is gone',
      async () => left('pods').length === 1 && left('pods')[0] === id,
    );

    await server.stop();
    server = await start();
    assert.equal((await up('echo up')).status, 'RUNNING', 'it keeps no server from starting either');
    await server.stop();
    for (const folder of [
      join(place.data, 'instances', aside, 'root', 'theirs'),
      join(place.data, 'pods', id, 'theirs'),
    ])
      chownSync(folder, user ?? 0, user ?? 0);
    server = await start();
    for (const pod of (await server.client().call<{ pods: PodView[] }>('GET', '/v2/pods')).body.pods)
      await terminate(pod.id);
    await nothingIsLeft();
  });

  test('a volume disk without a known pod stays, and is reported', async () => {
    const stranger = join(place.data, 'pods', 'stranger');
    mkdirSync(stranger, { recursive: true });
    await server.stop();
    server = await start();
    await waitFor('the log tells of it', async () =>
      parseLogLines(server).some(({ folder }) => folder === stranger),
    );
    assert.deepEqual(left('pods'), ['stranger']);
    rmSync(stranger, { recursive: true });
  });
});
