import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { podAction, waitForPodStatus } from '../../packages/testing/src/pod-client.ts';
import { listAuditLog } from '../../packages/testing/src/server-fixture.ts';
import type { PodAccessFixture } from '../../packages/testing/src/pod-access-fixture.ts';
import { openTerminal, openRefusedTerminal } from '../../packages/testing/src/terminal-client.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/** Terminals and commands in pods, over WebSockets. */
export function podTerminalSuite(fixture: PodAccessFixture): void {
  describe('terminals of a pod', () => {
    const path = (id: string, query = ''): string =>
      `${fixture.server().url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal${query}`;
    const key = (): string => fixture.server().key;
    const bearer = (): Record<string, string> => ({ authorization: `Bearer ${key()}` });

    test('a shell in a terminal: it echoes, has a size, is resized, and ends with its exit code', async () => {
      const id = await fixture.createPod({ env: { GREETING: 'hello' } });
      const terminal = await openTerminal(path(id, '?columns=91&rows=33'), bearer());
      assert.equal(terminal.opened.tty, true);
      assert.match(terminal.opened.command[0] ?? '', /^(bash|sh)$/);
      terminal.type('stty size; echo "[$GREETING $RUNPOD_POD_ID]"\n');
      await terminal.waitForOutput('33 91');
      await terminal.waitForOutput(`[hello ${id}]`);
      terminal.sendControl({ type: 'resize', columns: 120, rows: 40 });
      await terminal.typeUntilOutput('stty size\n', '40 120');
      terminal.type('exit 7\n');
      assert.deepEqual(await terminal.ended, {
        code: 1000,
        exit: { type: 'exit', exitCode: 7, signal: null },
      });
      assert.ok(
        (await listAuditLog(fixture.client())).some(
          (entry) => entry['action'] === 'terminal' && entry['resourceId'] === id,
        ),
      );
    });

    test('a command through pipes: bytes in and out, standard error apart, its exit code', async () => {
      const id = await fixture.createPod();
      const terminal = await openTerminal(
        path(id, `?cmd=sh&cmd=-c&cmd=${encodeURIComponent('cat; echo oops >&2; exit 3')}`),
        bearer(),
      );
      assert.deepEqual(
        [terminal.opened.tty, terminal.opened.command],
        [false, ['sh', '-c', 'cat; echo oops >&2; exit 3']],
      );
      const bytes = Buffer.from([0, 1, 2, 255, 10, 13]);
      terminal.type(bytes);
      terminal.sendControl({ type: 'eof' });
      assert.equal((await terminal.ended).exit?.exitCode, 3);
      assert.deepEqual([terminal.stdout(), terminal.stderr().toString()], [bytes, 'oops\n']);
    });

    test('the key may be in a header, in the address or among the protocols, and must be one that writes', async () => {
      const id = await fixture.createPod();
      const ways: [string, Record<string, string>, string[]][] = [
        ['', bearer(), []],
        [`&api_key=${key()}`, {}, []],
        ['', {}, ['berth.terminal', `berth.key.${key()}`]],
      ];
      for (const [query, headers, protocols] of ways) {
        const terminal = await openTerminal(
          path(id, `?cmd=sh&cmd=-c&cmd=exit%205${query}`),
          headers,
          protocols,
        );
        assert.equal((await terminal.ended).exit?.exitCode, 5);
      }
      const reader = (
        await fixture
          .client()
          .call<{ key: string }>('POST', '/v2/account/api-keys', { name: 'reader', access: 'READ_ONLY' })
      ).body.key;
      const stranger = (
        await fixture.client().call<{ key: string }>('POST', '/v2/accounts', { name: `other ${id}` })
      ).body.key;
      assert.equal((await openRefusedTerminal(path(id))).status, 401);
      assert.equal((await openRefusedTerminal(path(id, '?api_key=wrong'))).status, 401);
      assert.equal((await openRefusedTerminal(path(id, `?api_key=${reader}`))).status, 403);
      assert.equal((await openRefusedTerminal(path(id, `?api_key=${stranger}`))).status, 404);
      assert.equal((await openRefusedTerminal(path('nobody'), bearer())).status, 404);
      assert.match(
        (await openRefusedTerminal(path(id), {}, [`berth.key.${key()}`])).detail,
        /berth\.terminal/,
      );
    });

    test('an invalid request is refused with a message', async () => {
      const id = await fixture.createPod();
      for (const query of ['?tty=maybe', '?columns=0', '?rows=9999', '?cmd=', '?term=%00'])
        assert.equal((await openRefusedTerminal(path(id, query), bearer())).status, 422, query);
      const missing = await openRefusedTerminal(path(id, '?cmd=no-such-command'), bearer());
      assert.equal(missing.status, 400);
      assert.match(missing.detail, /no-such-command/);
      const odd = await openTerminal(path(id), bearer());
      odd.sendControl({ type: 'dance' });
      assert.equal((await odd.ended).code, 1007);
      await podAction(fixture.client(), id, 'stop');
      await waitForPodStatus(fixture.client(), id, 'EXITED');
      const stopped = await openRefusedTerminal(path(id), bearer());
      assert.deepEqual([stopped.status, /EXITED/.test(stopped.detail)], [409, true]);
      assert.equal((await fixture.client().call('GET', `/v2/pods/${id}/terminal`)).status, 400);
    });

    /** Whether a command with this mark in its environment runs in a pod. */
    const alive = async (id: string, mark: string): Promise<boolean> => {
      const look = await openTerminal(
        path(
          id,
          `?cmd=sh&cmd=-c&cmd=${encodeURIComponent(`for p in /proc/[0-9]*; do grep -qs MARK=${mark} $p/environ && echo alive; done; true`)}`,
        ),
        bearer(),
      );
      await look.ended;
      return look.stdout().toString().includes('alive');
    };

    test('closes when its key is revoked, disabled or may no longer write; others stay', async () => {
      const id = await fixture.createPod();
      const newKey = async (name: string): Promise<{ id: string; key: string }> =>
        (
          await fixture
            .client()
            .call<{ id: string; key: string }>('POST', '/v2/account/api-keys', { name, access: 'ALL' })
        ).body;
      const open = (withKey: string): ReturnType<typeof openTerminal> =>
        openTerminal(path(id, '?cmd=cat'), { authorization: `Bearer ${withKey}` });
      const ways = [
        ['DELETE', undefined],
        ['PATCH', { enabled: false }],
        ['PATCH', { access: 'READ_ONLY' }],
      ] as const;
      const stays = await open(key());
      for (const [method, change] of ways) {
        const made = await newKey('short');
        const terminal = await open(made.key);
        const before = performance.now();
        const { status } = await fixture.client().call(method, `/v2/account/api-keys/${made.id}`, change);
        assert.equal(Math.floor(status / 100), 2, `${method} ${JSON.stringify(change)}`);
        assert.deepEqual(await terminal.ended, { code: 4401, exit: undefined });
        // Each ping looks at the key, too, but those are 20 seconds apart.
        assert.ok(performance.now() - before < 10_000);
        assert.equal(
          (await openRefusedTerminal(path(id), { authorization: `Bearer ${made.key}` })).status,
          change !== undefined && 'access' in change ? 403 : 401,
        );
      }
      stays.type('still here\n');
      await stays.waitForOutput('still here');
      stays.terminate();
    });

    test('a command ends with the key that opened it, also where its client does not listen', async () => {
      const id = await fixture.createPod();
      const made = (
        await fixture
          .client()
          .call<{ id: string; key: string }>('POST', '/v2/account/api-keys', { name: 'deaf', access: 'ALL' })
      ).body;
      const terminal = await openTerminal(
        path(
          id,
          `?cmd=sh&cmd=-c&cmd=${encodeURIComponent("MARK=revoked sh -c 'echo up; while :; do sleep 0.2; done'")}`,
        ),
        { authorization: `Bearer ${made.key}` },
      );
      await terminal.waitForOutput('up');
      assert.equal(await alive(id, 'revoked'), true);
      terminal.pause();
      await fixture.client().call('DELETE', `/v2/account/api-keys/${made.id}`);
      await waitFor('the command ends', async () => !(await alive(id, 'revoked')));
      terminal.terminate();
    });

    test('a client that goes away ends its command, also one that does not want to end', async () => {
      const id = await fixture.createPod();
      for (const [mark, query] of [
        ['pipes', '&tty=false'],
        ['terminal', '&tty=true'],
      ] as const) {
        const stubborn = `trap "" HUP TERM; MARK=${mark} sh -c 'echo up; while :; do sleep 0.2; done'`;
        const terminal = await openTerminal(
          path(id, `?cmd=sh&cmd=-c&cmd=${encodeURIComponent(stubborn)}${query}`),
          bearer(),
        );
        await terminal.waitForOutput('up');
        assert.equal(await alive(id, mark), true);
        terminal.terminate();
        await waitFor(`the ${mark} command ends`, async () => !(await alive(id, mark)));
      }
    });

    test('much output arrives whole at a client that reads slowly, and much input at the command', async () => {
      const id = await fixture.createPod();
      const megabytes = 20;
      const terminal = await openTerminal(
        path(
          id,
          `?cmd=node&cmd=-e&cmd=${encodeURIComponent(`for (let i = 0; i < ${megabytes}; i += 1) process.stdout.write(Buffer.alloc(1048576, 65 + i))`)}`,
        ),
        bearer(),
      );
      terminal.pause();
      terminal.resume();
      await terminal.ended;
      assert.equal(terminal.stdout().length, megabytes * 1024 * 1024);
      const counting = await openTerminal(
        path(
          id,
          `?cmd=node&cmd=-e&cmd=${encodeURIComponent('let n = 0; process.stdin.on("data", (c) => (n += c.length)); process.stdin.on("end", () => console.log(n))')}`,
        ),
        bearer(),
      );
      for (let sent = 0; sent < 100; sent += 1) counting.type(Buffer.alloc(100_000, 1));
      counting.sendControl({ type: 'eof' });
      await counting.ended;
      assert.equal(counting.stdout().toString().trim(), '10000000');
    });

    test('a terminal ends with its pod', async () => {
      const id = await fixture.createPod();
      const terminal = await openTerminal(path(id, '?cmd=sleep&cmd=1000'), bearer());
      await fixture.client().call('DELETE', `/v2/pods/${id}`);
      const { code, exit } = await terminal.ended;
      assert.equal(code, 1000);
      assert.notEqual(exit?.exitCode, 0);
    });

    test('another protocol is not spoken here', async () => {
      const id = await fixture.createPod();
      const asking = request(path(id).replace(/^ws/, 'http'), {
        headers: { ...bearer(), connection: 'Upgrade', upgrade: 'chat' },
      }).end();
      const [answer] = (await once(asking, 'response')) as [IncomingMessage];
      assert.equal(answer.statusCode, 400);
      answer.destroy();
    });
  });
}
